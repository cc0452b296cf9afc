// Which members of a view suffice for the next one, when the store may have moved.
import { describe, expect, test } from 'vitest';
import { decide, type Knowledge } from '../../../src/membership/protocol/decide.ts';
import { canMove, standbysOf } from '../../../src/membership/protocol/quorum.ts';
import type { Report, View } from '../../../src/membership/protocol/view.ts';

/** A view of two members on each of `hosts` hosts; the first host has the store. */
function viewOn(hosts: number, parts: Partial<View> = {}): View {
  const members = Array.from({ length: 2 * hosts }, (_, slot) => {
    const host = `h${slot >> 1}`;
    return { id: `m${slot}`, slot, host, process: null, standby: `${host}:1` };
  });
  return {
    ...{ number: 3, epoch: 0, members, joined: [], lost: [], left: [], finalSteps: 10, decision: 'redo' },
    ...{ unsettled: [], wishes: 0, unread: [], failure: null, ended: null, isOver: false },
    ...parts,
  };
}

const report = (slot: number, parts: Partial<Report> = {}): Report => ({
  ...{ member: `m${slot}`, view: 3, finalSteps: 10, isComplete: false, hasState: true, wasConnected: true },
  ...{ unreachable: [], isLeaving: false, isDone: false, failure: 'ERR_COLL_PEER_LOST in allReduce' },
  ...parts,
});

function outcome(view: View, slots: readonly number[], epoch: number, parts: Partial<Knowledge> = {}) {
  const knowledge = { reports: slots.map((slot) => report(slot)), wishes: [], ended: new Set<string>() };
  const rules = { min: 1, settleMs: 200, stallMs: 2_000, joinTimeoutMs: 5_000, epoch };
  return decide(view, { ...knowledge, forMs: 1_000, ...parts }, rules);
}

const sizeOf = (decided: ReturnType<typeof outcome>) =>
  decided.kind === 'view' && decided.view.ended === null ? decided.view.members.length : null;

describe('in the store in which the view was written', () => {
  test('half of its members suffice, fewer do not', () => {
    expect(sizeOf(outcome(viewOn(3), [0, 1, 2], 0))).toBe(3);
    expect(outcome(viewOn(3), [0, 1], 0)).toMatchObject({ kind: 'wait', forMs: 9_000 });
    const late = outcome(viewOn(3), [0, 1], 0, { forMs: 10_000 });
    expect(late).toMatchObject({ view: { ended: expect.stringContaining('2 of the 6 members') } });
  });

  test('members that have ended for certain are not missing', () => {
    expect(sizeOf(outcome(viewOn(3), [0, 1], 0, { ended: new Set(['m4']) }))).toBe(2);
  });

  test('a slot that another host has taken over says nothing about the process before', () => {
    const wish = { id: 'new', slot: 4, host: 'other', process: null, standby: 'other:1' };
    const wishes = [{ number: 1, wish }];
    expect(outcome(viewOn(3), [0, 1], 0, { wishes }).kind).toBe('wait');
    expect(
      sizeOf(outcome(viewOn(3), [0, 1], 0, { wishes: [{ number: 1, wish: { ...wish, host: 'h2' } }] })),
    ).toBe(3);
  });

  test('any suffice if the store cannot move', () => {
    expect(sizeOf(outcome(viewOn(2), [0], 0))).toBe(1);
  });
});

describe('in another store', () => {
  test('more than half of the members suffice, whatever is known of the others', () => {
    expect(sizeOf(outcome(viewOn(3), [2, 3, 4, 5], 1))).toBe(4);
    expect(outcome(viewOn(3), [3, 4, 5], 1, { ended: new Set(['m0']) }).kind).toBe('wait');
  });

  test('the job ends at once if the view is on two hosts, and says what becomes of the step', () => {
    const reports = [2, 3].map((slot) => report(slot, { isComplete: true }));
    expect(outcome(viewOn(2), [], 1, { reports })).toMatchObject({
      view: { finalSteps: 11, decision: 'commit', ended: expect.stringContaining('2 of the 4 members') },
    });
  });
});

test('a view that was never connected does not count alone', () => {
  const before = { members: ['m0', 'm1', 'm2', 'm3', 'm6', 'm7', 'm8', 'm9'], epoch: 0, canMove: true };
  const view = viewOn(3, { unsettled: [before] });
  const reports = [0, 1, 2].map((slot) => report(slot, { wasConnected: false }));
  expect(outcome(view, [], 0, { reports }).kind).toBe('wait');
  expect(sizeOf(outcome(view, [0, 1, 2], 0))).toBe(3);
});

test('a view can move if it is on three hosts and each has a store; the order is that of the slots', () => {
  expect([canMove(viewOn(3)), canMove(viewOn(2))]).toEqual([true, false]);
  const [first, ...rest] = viewOn(4).members;
  expect(canMove({ members: [{ ...first!, standby: null }, ...rest] })).toBe(false);
  expect(standbysOf(viewOn(3), 'h0:1')).toEqual(['h1:1', 'h2:1']);
});
