// How diloco() uses a membership: what it reports when the vote after an average fails, and what it does as the members
// decide. The membership here is a list of loopback groups, and a vote is a barrier.
import { CollectiveError, type Group, loopbackGroups } from '@ringwise/collectives';
import { describe, expect, it } from 'vitest';
import { type Change, type Decision, diloco, type Membership, type Progress } from '../../../src/index.ts';
import { outcomes } from '../../support/loopback.ts';
import { flat, largestDifference, makeNet, setEach } from '../../support/net.ts';

const memberOf = (slot: number) => ({ id: `${slot}.0`, slot, host: 'here', process: null, standby: null });

/** Members 0 to 2 of which member 2 is lost in its vote number `lostAt`; the others decide `decision`. */
function members(
  lostAt: number,
  decision: Decision,
): { groups: Group[]; of: (rank: number) => Membership; told: Progress[] } {
  const [first, second] = [
    loopbackGroups(3, { timeoutMs: 60_000 }),
    loopbackGroups(2, { timeoutMs: 60_000 }),
  ];
  const told: Progress[] = [];
  const viewOf = (number: number, slots: readonly number[], finalSteps: number): Change['view'] => ({
    ...{ number, members: slots.map(memberOf), joined: [], lost: [], left: [], finalSteps, decision },
    ...{ epoch: 0, unsettled: [], wishes: 0, unread: [], failure: null, ended: null, isOver: false },
  });
  const of = (rank: number): Membership => {
    let change: Change = {
      view: viewOf(0, [0, 1, 2], 0),
      group: first[rank]!,
      decision: 'redo',
      joined: [0, 1, 2],
    };
    let votes = 0;
    return {
      self: memberOf(rank),
      first: change,
      get view() {
        return change.view;
      },
      get group() {
        return change.group;
      },
      vote: async () => {
        if (rank === 2 && votes++ === lostAt) change.group.abort('lost');
        await change.group.barrier();
        return { changesView: false, isLeaving: false };
      },
      voteSync: () => {
        throw new Error('voteSync: a loopback group cannot block');
      },
      isChange: (error) => rank !== 2 && CollectiveError.is(error),
      change: (progress) => {
        told.push(progress);
        const { finalSteps } = progress;
        const view = viewOf(1, [0, 1], decision === 'commit' ? finalSteps + 1 : finalSteps);
        change = { view, group: second[rank]!, decision, joined: [] };
        return Promise.resolve(change);
      },
      leave: () => {},
      close: () => change.group.close(),
    };
  };
  return { groups: [...first, ...second], of, told };
}

describe('a vote that fails', () => {
  for (const decision of ['commit', 'redo'] as const)
    for (const delay of [0, 1])
      it(`after a complete average, with decision ${decision} and delay ${delay}`, async () => {
        const { groups, of, told } = members(1, decision);
        const start = flat(makeNet());
        const ends = await outcomes(groups.slice(0, 3), async ({ rank }) => {
          const membership = of(rank);
          const net = makeNet();
          const outer = await diloco(net, { membership, every: 2, delay, outer: 'average' });
          const averaged: boolean[] = [];
          for (let step = 1; step <= 4 + delay; step++) {
            // Nothing moves while an average is on its way, so that its result is the same with any delay.
            if (step % 2 === 0) setEach(net, (value) => value + rank + 1);
            const end = await outer.step();
            averaged.push(end.averaged);
            expect(end.changes.map(({ view }) => view.number)).toEqual(step === 4 + delay ? [1] : []);
          }
          expect([outer.averages, outer.group.size]).toEqual([2, 2]);
          return { averaged, net: flat(net) };
        });
        await Promise.all(groups.map((group) => group.close()));
        expect(ends[2]!.status).toBe('rejected');
        expect(told).toEqual(Array(2).fill({ finalSteps: 1, isComplete: true, hasState: true }));
        // In each round the ranks move by 1, 2 and 3. The lost one has given its part to the average that is final.
        const second = decision === 'commit' ? 2 : 1.5;
        const expected = start.map((value) => value + 2 + second);
        for (const end of ends.slice(0, 2)) {
          if (end.status === 'rejected') throw end.reason;
          expect(end.value.averaged.at(-1)).toBe(true);
          expect(largestDifference(end.value.net, expected)).toBeLessThan(1e-5);
        }
      });
});

it('does not report an average as complete if its memory has carried the state to a joiner since', async () => {
  const [first, second, last] = [2, 2, 1].map((size) => loopbackGroups(size, { timeoutMs: 60_000 }));
  const given = { every: 2, fragments: 2, outer: 'average' } as const;
  const viewOf = (number: number, slots: readonly number[]): Change['view'] => ({
    ...{ number, members: slots.map(memberOf), joined: [], lost: [], left: [], finalSteps: 0 },
    ...{
      decision: 'redo',
      epoch: 0,
      unsettled: [],
      wishes: 0,
      unread: [],
      failure: null,
      ended: null,
      isOver: false,
    },
  });
  const told: Progress[] = [];
  /** Goes from one group to the next, each time that the present one fails. Member 1 is lost in its first vote. */
  const membershipOf = (rank: number, groups: readonly Group[]): Membership => {
    const changes = groups.map(
      (group, number): Change => ({ view: viewOf(number, [0, 1]), group, decision: 'redo', joined: [] }),
    );
    let at = 0;
    return {
      ...{ self: memberOf(rank), first: changes[0]! },
      get view() {
        return changes[at]!.view;
      },
      get group() {
        return changes[at]!.group;
      },
      vote: async () => {
        if (rank === 1) groups[at]!.abort('lost');
        await groups[at]!.barrier();
        return { changesView: false, isLeaving: false };
      },
      voteSync: () => {
        throw new Error('voteSync: a loopback group cannot block');
      },
      isChange: (error) => rank === 0 && CollectiveError.is(error),
      change: (progress) => {
        told.push(progress);
        return Promise.resolve(changes[++at]!);
      },
      leave: () => {},
      close: () => Promise.resolve(),
    };
  };
  /** The group of the joiner, which is lost when it has received the first fragment. */
  const dying = new Proxy(second![1]!, {
    get: (group, name) => {
      const value: unknown = Reflect.get(group, name, group);
      if (name !== 'broadcast') return typeof value === 'function' ? value.bind(group) : value;
      return async (...args: Parameters<Group['broadcast']>) => {
        await group.broadcast(...args);
        group.abort('lost');
      };
    },
  });
  const train = async (membership: Membership) => {
    const net = makeNet();
    const outer = await diloco(net, { ...given, membership });
    setEach(net, (value) => value + 1);
    for (let i = 0; i < given.every; i++) await outer.step();
    return flat(net);
  };
  const [own, other, joiner] = await Promise.allSettled([
    train(membershipOf(0, [first![0]!, second![0]!, last![0]!])),
    train(membershipOf(1, [first![1]!])),
    diloco(makeNet(9), { ...given, group: dying }),
  ]);
  await Promise.all([first, second, last].flat().map((group) => group!.close()));
  expect([other!.status, joiner!.status]).toEqual(['rejected', 'rejected']);
  expect(told.map(({ isComplete }) => isComplete)).toEqual([true, false]);
  if (own!.status === 'rejected') throw own!.reason;
  const expected = flat(makeNet()).map((value) => value + 1);
  expect(largestDifference(own!.value as Float32Array, expected)).toBeLessThan(1e-6);
});
