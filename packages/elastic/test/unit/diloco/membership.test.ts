// How diloco() uses a membership: what it reports when the vote after an average fails, and what it does as the members
// decide. The membership here is a list of loopback groups, and a vote is a barrier.
import { CollectiveError, type Group, loopbackGroups } from '@ringwise/collectives';
import { describe, expect, it } from 'vitest';
import { type Change, type Decision, diloco, type Membership, type Progress } from '../../../src/index.ts';
import { outcomes } from '../../support/loopback.ts';
import { flat, largestDifference, makeNet, setEach } from '../../support/net.ts';

const memberOf = (slot: number) => ({ id: `${slot}.0`, slot, host: 'here', process: null });

/** Members 0 to 2 of which member 2 is lost in its vote number `lostAt`; the others decide `decision`. */
function members(
  lostAt: number,
  decision: Decision,
): { groups: Group[]; of: (rank: number) => Membership; told: Progress[] } {
  const [first, second] = [loopbackGroups(3, { timeoutMs: 5000 }), loopbackGroups(2, { timeoutMs: 5000 })];
  const told: Progress[] = [];
  const viewOf = (number: number, slots: readonly number[], finalSteps: number): Change['view'] => ({
    ...{ number, members: slots.map(memberOf), joined: [], lost: [], left: [], finalSteps, decision },
    ...{ wishes: 0, unread: [], failure: null, ended: null },
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
