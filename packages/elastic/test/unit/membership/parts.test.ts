import { aborted, type CollectiveCode, CollectiveError } from '@ringwise/collectives';
import { MemoryStore } from '@ringwise/store';
import { describe, expect, test } from 'vitest';
import { changeReason, isMembershipError } from '../../../src/membership/classify.ts';
import { planJoin } from '../../../src/membership/options.ts';
import { Pace } from '../../../src/membership/protocol/pace.ts';
import { ballotOf, differing, tallyOf } from '../../../src/membership/protocol/voting.ts';

describe('a vote', () => {
  const reduce = (...ballots: Float64Array[]) =>
    Float64Array.from(ballots[0]!, (_, at) => Math.max(...ballots.map((each) => each[at]!)));
  const ballot = (agreed: number[], parts = {}) =>
    ballotOf({ isLeaving: false, isOver: false, hasUnreadWish: false, agreed, ...parts });
  test('changes the view if one member leaves or sees a wish', () => {
    expect(tallyOf(reduce(ballot([1]), ballot([1]))).changesView).toBe(false);
    expect(tallyOf(reduce(ballot([1]), ballot([1], { isLeaving: true }))).changesView).toBe(true);
    expect(tallyOf(reduce(ballot([1], { hasUnreadWish: true }), ballot([1]))).changesView).toBe(true);
  });
  test('puts leaving off if all leave and a process joins, and not if the training of one is over', () => {
    const [leaves, sees] = [{ isLeaving: true }, { isLeaving: true, hasUnreadWish: true }];
    const putsOff = (...parts: object[]) =>
      tallyOf(reduce(...parts.map((each) => ballot([1], each)))).putsOff;
    expect(putsOff(leaves, sees)).toBe(true);
    expect(putsOff(leaves, leaves)).toBe(false);
    expect(putsOff(sees, {})).toBe(false);
    expect(putsOff(sees, { ...leaves, isOver: true })).toBe(false);
  });
  test('finds the number that differs', () => {
    expect(differing(reduce(ballot([0, -5]), ballot([0, -5])))).toBeNull();
    expect(differing(reduce(ballot([7, 3, 1]), ballot([7, 2, 1])))).toBe(1);
  });
});

describe('isMembershipError', () => {
  const error = (code: CollectiveCode, peers: number[], rank = 0) =>
    new CollectiveError(
      { code, verb: 'allReduce', seq: 1, peers, what: 'it failed' },
      { group: 'g', rank, size: 3 },
    );
  test.each([
    ['ERR_COLL_PEER_LOST', [1], true],
    ['ERR_COLL_TIMEOUT', [1], true],
    ['ERR_COLL_SYSTEM', [2], true],
    ['ERR_COLL_SYSTEM', [0], false],
    ['ERR_COLL_MISMATCH', [0, 1], false],
    ['ERR_COLL_INVALID', [], false],
    ['ERR_COLL_CLOSED', [], false],
  ] as const)('%s of %j: %s', (code, peers, expected) => {
    expect(isMembershipError(error(code, [...peers]), null)).toBe(expected);
    expect(isMembershipError(new Error('outer', { cause: error(code, [...peers]) }), null)).toBe(expected);
  });
  test('an abort counts only if a member has ended the view', () => {
    const site = { group: 'g', rank: 0, size: 3 };
    const reason = changeReason(new Error('x'));
    expect(isMembershipError(new CollectiveError(aborted(1, reason), site), null)).toBe(true);
    expect(isMembershipError(new CollectiveError(aborted(1, 'a bug'), site), null)).toBe(false);
    expect(isMembershipError(new TypeError('a bug'), null)).toBe(false);
  });
});

test('deadlines follow the median step, and do not count interruptions', () => {
  const pace = new Pace({});
  expect(pace.patience).toEqual({ settleMs: 2_000, stallMs: 60_000 });
  for (let step = 0; step <= 10; step++) pace.tick(step * 500);
  expect(pace.patience).toEqual({ settleMs: 2_000, stallMs: 10_000 });
  pace.pause();
  for (let step = 0; step <= 40; step++) pace.tick(1e6 + step * 10);
  expect(pace.patience).toEqual({ settleMs: 200, stallMs: 2_000 });
  expect(new Pace({ settleMs: 7 }).patience.settleMs).toBe(7);
});

describe('options', () => {
  const store = new MemoryStore();
  const plan = (options: object, env = {}) => planJoin(options, env);
  test('names the member by slot and incarnation', () => {
    const { self } = plan({ store, size: 2 }, { RINGWISE_SLOT: '3', RINGWISE_INCARNATION: '2' });
    expect(self).toMatchObject({ id: '3.2', slot: 3 });
    expect(plan({ store, size: 2 }).self.slot).toBeNull();
    expect(() => plan({ store, size: 2 }, { RINGWISE_SLOT: 'x' })).toThrow(/RINGWISE_SLOT is 'x'/);
  });
  test.each([
    [{ store, size: 2, minRanks: 1 }, /unknown option 'minRanks'; expected 'min'/],
    [{ store, size: 2, min: 3 }, /'min': expected at most size, which is 2, got 3/],
    [{ store, size: 0 }, /'size': expected a whole number from 1/],
    [{ store, size: 2, settleMs: 0 }, /'settleMs': expected milliseconds above 0/],
    [{ store: 5, size: 2 }, /'store': expected a Store/],
    [{ store }, /number of founding members is unknown/],
    [{ size: 2 }, /no store that outlives a lost member/],
  ])('%# is refused', (options, sentence) => {
    expect(() => plan(options)).toThrow(sentence);
  });
});
