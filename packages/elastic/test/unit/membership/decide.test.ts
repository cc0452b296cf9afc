import { describe, expect, test } from 'vitest';
import { decide, found, type Knowledge, type NumberedWish } from '../../../src/membership/protocol/decide.ts';
import type { Report, View, Wish } from '../../../src/membership/protocol/view.ts';

const wish = (id: string, slot: number | null): Wish => ({
  id,
  slot,
  host: 'h',
  process: null,
  standby: null,
});
const view: View = {
  number: 3,
  epoch: 0,
  unsettled: [],
  members: ['a', 'b', 'c', 'd'].map((id, slot) => ({ ...wish(id, slot), slot })),
  joined: [],
  lost: [],
  left: [],
  finalSteps: 10,
  decision: 'redo',
  wishes: 4,
  unread: [],
  failure: null,
  ended: null,
  isOver: false,
};
const rules = { min: 1, settleMs: 200, stallMs: 2_000, joinTimeoutMs: 5_000, epoch: 0 };
const report = (member: string, parts: Partial<Report> = {}): Report => ({
  member,
  view: 3,
  finalSteps: 10,
  isComplete: false,
  hasState: true,
  wasConnected: true,
  unreachable: [],
  isLeaving: false,
  isDone: false,
  failure: 'ERR_COLL_PEER_LOST in allReduce',
  ...parts,
});
const numbered = (...wishes: (Wish | null)[]): NumberedWish[] =>
  wishes.map((each, index) => ({ number: 5 + index, wish: each }));
const known = (reports: Report[], parts: Partial<Knowledge> = {}): Knowledge => ({
  reports,
  wishes: [],
  ended: new Set(),
  forMs: 0,
  ...parts,
});

function next(knowledge: Knowledge, some: Partial<typeof rules> = {}): View {
  const outcome = decide(view, knowledge, { ...rules, ...some });
  if (outcome.kind !== 'view') throw new Error(`waits for ${outcome.missing.join()}`);
  return outcome.view;
}
const ids = ({ members }: View) => members.map(({ id }) => id);
const dead = (id: string) => ({ ended: new Set([id]) });

describe('the step in flight', () => {
  const [a, b, c] = ['a', 'b', 'c'] as const;
  test('is redone if a survivor lacks averages', () => {
    const reports = [report(a, { isComplete: true }), report(b), report(c, { isComplete: true })];
    expect(next(known(reports, dead('d')))).toMatchObject({ decision: 'redo', finalSteps: 10 });
  });
  test('is final if all survivors hold the averages', () => {
    const reports = [a, b, c].map((id) => report(id, { isComplete: true }));
    expect(next(known(reports, dead('d')))).toMatchObject({ decision: 'commit', finalSteps: 11 });
  });
  test('is final if one survivor has applied it', () => {
    const reports = [
      report(a, { isComplete: true }),
      report(b, { finalSteps: 11 }),
      report(c, { isComplete: true }),
    ];
    expect(next(known(reports, dead('d')))).toMatchObject({ decision: 'commit', finalSteps: 11 });
  });
  test('ends the job if one has applied what another one cannot', () => {
    const reports = [report(a), report(b, { finalSteps: 11 }), report(c)];
    expect(next(known(reports, dead('d'))).ended).toContain('expected at most one step between them');
  });
  test('does not depend on members without state, which get it again', () => {
    const reports = [report(a, { isComplete: true }), report(b, { hasState: false, finalSteps: 0 })];
    const ended = new Set(['c', 'd']);
    expect(next(known(reports, { ended }))).toMatchObject({
      decision: 'commit',
      finalSteps: 11,
      joined: ['b'],
    });
  });
  test('ends the job if no survivor has state', () => {
    const ended = new Set(['b', 'c', 'd']);
    expect(next(known([report(a, { hasState: false })], { ended })).ended).toContain('are lost');
  });
  test('says to those that join that the training is over, if those with state have ended it', () => {
    const ended = new Set(['c', 'd']);
    const done = report(b, { isLeaving: true, isDone: true, finalSteps: 12, failure: null });
    const joiner = report(a, { hasState: false, finalSteps: 0 });
    expect(next(known([joiner, done], { ended })).ended).toBe(
      'the training is over: its members have ended after step 12, before those that joined had its state',
    );
    // The process of a member that has reported its end may have ended, too.
    expect(next(known([joiner, done], { ended: new Set(['b', 'c', 'd']) }))).toMatchObject({
      ...{ isOver: true, left: ['b'], lost: ['c', 'd'] },
    });
    // One that leaves because it was told to does not end the training.
    const told = { ...done, isDone: false };
    expect(next(known([joiner, told], { ended })).ended).toContain('are lost');
  });
});

describe('members that have not reported', () => {
  const reports = [report('a'), report('b'), report('c')];
  test('are waited for, for settleMs', () => {
    expect(decide(view, known(reports), rules)).toEqual({ kind: 'wait', forMs: 200, missing: ['d'] });
    expect(ids(next(known(reports, { forMs: 200 })))).toEqual(['a', 'b', 'c']);
  });
  test('are waited for four times as long, at most 5 s, if they are more than those that have', () => {
    const first = [report('a')];
    const missing = ['b', 'c', 'd'];
    expect(decide(view, known(first), rules)).toEqual({ kind: 'wait', forMs: 800, missing });
    expect(ids(next(known(first, { forMs: 800 })))).toEqual(['a']);
    const waits = (settleMs: number) => decide(view, known(first), { ...rules, settleMs });
    expect(waits(2_000)).toMatchObject({ kind: 'wait', forMs: 5_000 });
    expect(waits(9_000)).toMatchObject({ kind: 'wait', forMs: 9_000 });
    // Half of the members go on without the other half as soon as without one.
    expect(decide(view, known(reports.slice(0, 2)), rules)).toMatchObject({ kind: 'wait', forMs: 200 });
  });
  test('are waited for longer after a vote, when all are known to live', () => {
    const calm = reports.map((each) => ({ ...each, failure: null }));
    expect(decide(view, known(calm, { forMs: 1_999 }), rules)).toMatchObject({ kind: 'wait', forMs: 1 });
  });
  test('are not waited for if they have ended, or have a successor in their slot', () => {
    expect(ids(next(known(reports, dead('d'))))).toEqual(['a', 'b', 'c']);
    const replaced = next(known(reports, { wishes: numbered(wish('e', 3)) }));
    expect(ids(replaced)).toEqual(['a', 'b', 'c', 'e']);
    expect(replaced).toMatchObject({ joined: ['e'], lost: ['d'], wishes: 5 });
  });
  test('are waited for although others have lost them', () => {
    const lost = reports.map((each) => ({ ...each, unreachable: [{ member: 'd', isCertain: false }] }));
    expect(decide(view, known(lost), rules).kind).toBe('wait');
  });
});

describe('who stays', () => {
  const cut = (id: string, ...others: string[]) =>
    report(id, { wasConnected: false, unreachable: others.map((member) => ({ member, isCertain: false })) });
  test('the fewest go so that the rest reach each other; of a pair the higher slot', () => {
    expect(ids(next(known([cut('a', 'b'), cut('b', 'a'), report('c'), report('d')])))).toEqual([
      'a',
      'c',
      'd',
    ]);
    expect(ids(next(known([cut('a', 'b', 'c', 'd'), cut('b', 'a'), cut('c', 'a'), cut('d', 'a')])))).toEqual([
      'b',
      'c',
      'd',
    ]);
  });
  test('a connected member that names another one keeps it', () => {
    const reports = [
      report('a', { unreachable: [{ member: 'b', isCertain: false }] }),
      report('b'),
      report('c'),
      report('d'),
    ];
    expect(ids(next(known(reports)))).toEqual(['a', 'b', 'c', 'd']);
  });
  test('the side with the state, if the larger one has none', () => {
    const stateless = (id: string) => ({ ...cut(id, 'a'), hasState: false });
    expect(ids(next(known([cut('a', 'b', 'c', 'd'), ...['b', 'c', 'd'].map(stateless)])))).toEqual(['a']);
  });
  test('not those that leave, but what they know counts', () => {
    const reports = [
      report('a', { finalSteps: 11, isLeaving: true }),
      ...['b', 'c', 'd'].map((id) => report(id, { isComplete: true })),
    ];
    expect(next(known(reports))).toMatchObject({ left: ['a'], lost: [], decision: 'commit', finalSteps: 11 });
  });
  test('fewer than min wait for others, then end the job', () => {
    const ended = new Set(['b', 'c', 'd']);
    expect(decide(view, known([report('a')], { ended }), { ...rules, min: 2 })).toMatchObject({
      kind: 'wait',
      forMs: 5_000,
    });
    const joined = next(known([report('a')], { ended, wishes: numbered(wish('e', null)) }), { min: 2 });
    expect(joined.members.map(({ id, slot }) => [id, slot])).toEqual([
      ['a', 0],
      ['e', 1],
    ]);
    expect(next(known([report('a')], { ended, forMs: 5_000 }), { min: 2 }).ended).toContain(
      '1 of at least 2 members',
    );
  });
});

test('the same failure at the same step ends the job at the third time', () => {
  const reports = view.members.map(({ id }) => report(id));
  const first = next(known(reports));
  expect(first.failure).toEqual({ what: 'ERR_COLL_PEER_LOST in allReduce', times: 1 });
  const again = (before: View, finalSteps: number) => {
    const outcome = decide(before, known(reports.map((each) => ({ ...each, finalSteps }))), rules);
    return outcome.kind === 'view' ? outcome.view : before;
  };
  const second = again(first, 10);
  expect(second).toMatchObject({ failure: { times: 2 }, ended: null });
  expect(again(second, 11)).toMatchObject({ failure: { times: 1 }, ended: null });
  expect(again(second, 10).ended).toContain('step 10 has failed 3 times in the same way');
});

test('a wish that has a number but no text is read again', () => {
  const reports = view.members.map(({ id }) => report(id));
  expect(next(known(reports, { wishes: numbered(null, wish('f', null)) }))).toMatchObject({
    wishes: 6,
    unread: [5],
  });
});

describe('found', () => {
  const wishes = numbered(wish('x', null), wish('y', 4), wish('z', null));
  const founding = { size: 4, min: 2, lastCallMs: 100, founders: [] };
  test('waits for all, and after the last call for min', () => {
    expect(found({ wishes, ended: new Set(), forMs: 99 }, founding)).toBeNull();
    const first = found({ wishes, ended: new Set(), forMs: 100 }, founding)!;
    expect(first.members.map(({ id, slot }) => [id, slot])).toEqual([
      ['x', 0],
      ['z', 1],
      ['y', 4],
    ]);
    expect(first.joined).toEqual(['x', 'z', 'y']);
    expect(found({ wishes, ended: new Set(['x', 'y']), forMs: 100 }, founding)).toBeNull();
  });

  test('does not wait for founding members whose processes have ended', () => {
    const named = { ...founding, founders: ['0.0', '1.0', '2.0', '3.0'] };
    const there = numbered(wish('0.0', 0), wish('2.0', 2), wish('3.0', 3));
    expect(found({ wishes: there, ended: new Set(), forMs: 0 }, named)).toBeNull();
    const first = found({ wishes: there, ended: new Set(['1.0']), forMs: 0 }, named);
    expect(first?.members.map(({ id }) => id)).toEqual(['0.0', '2.0', '3.0']);
    // Another process has its slot.
    const again = [...there.slice(1), ...numbered(wish('1.1', 1))];
    expect(found({ wishes: again, ended: new Set(['1.0']), forMs: 0 }, named)).toBeNull();
  });
});

test('a training that is over needs no further members, but one whose members leave does', () => {
  const own = report('a', { isComplete: true });
  const leave = (id: string, isDone: boolean) =>
    report(id, { finalSteps: 11, isLeaving: true, isDone, failure: null });
  const reports = (isDone: boolean) => [own, ...['b', 'c', 'd'].map((id) => leave(id, isDone))];
  const end = next(known(reports(true)), { min: 3 });
  expect(end).toMatchObject({ finalSteps: 11, decision: 'commit', ended: null });
  expect(ids(end)).toEqual(['a']);
  expect(() => next(known(reports(false)), { min: 3 })).toThrow('waits');
});
