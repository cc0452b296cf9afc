// Race 5: member A can send to member B, and B cannot send to A, while both reach the store. Every member computes the
// same view from the same reports, at any time.
import { describe, expect, test } from 'vitest';
import { decide } from '../../../../src/membership/protocol/decide.ts';
import type { Member, Report, View } from '../../../../src/membership/protocol/view.ts';
import { Scene } from '../../../support/simulation/scene.ts';

const members = ['a', 'b', 'c', 'd'].map(
  (id, slot): Member => ({ id, slot, host: id, process: null, standby: null }),
);
const view: View = {
  ...{ number: 3, epoch: 0, members, joined: [], lost: [], left: [], finalSteps: 10, decision: 'redo' },
  ...{ unsettled: [], wishes: 0, unread: [], failure: null, ended: null, isOver: false },
};
const rules = { min: 1, settleMs: 200, stallMs: 2_000, joinTimeoutMs: 5_000, epoch: 0 };

/** Returns the reports of members of which `blind` could not connect with `lost`. */
function reportsOf(blind: string, lost: string): Report[] {
  return members.map(({ id }) => ({
    ...{ member: id, view: 3, finalSteps: 10, isComplete: false, hasState: true, wasConnected: false },
    ...{ isLeaving: false, isDone: false, failure: 'ERR_COLL_INIT in init' },
    unreachable: id === blind ? [{ member: lost, isCertain: false }] : [],
  }));
}

function chosen(reports: readonly Report[], forMs: number): string[] {
  const outcome = decide(view, { reports, wishes: [], ended: new Set(), forMs }, rules);
  if (outcome.kind !== 'view') throw new Error('waits');
  return outcome.view.members.map(({ id }) => id);
}

describe('the view is the same', () => {
  test('whichever side notices the cut', () => {
    expect(chosen(reportsOf('b', 'c'), 0)).toEqual(['a', 'b', 'd']);
    expect(chosen(reportsOf('c', 'b'), 0)).toEqual(['a', 'b', 'd']);
  });

  test('in whatever order the reports have come, and however long ago by the clock of the proposer', () => {
    for (let turn = 0; turn < members.length; turn++)
      for (const forMs of [0, 199, 200, 100_000]) {
        const reports = reportsOf('d', 'a');
        const turned = [...reports.slice(turn), ...reports.slice(0, turn)];
        expect(chosen(turned, forMs)).toEqual(['a', 'b', 'c']);
        expect(chosen(turned.toReversed(), forMs)).toEqual(['a', 'b', 'c']);
      }
  });
});

for (const proposer of ['member 0', 'another member, because the proposal of member 0 is lost'])
  test(`a cut between members 1 and 2 costs the job member 2 (the view is that of ${proposer})`, () => {
    const scene = new Scene({ size: 4 }).untilApplied(0, 3);
    scene.world.cut(1, 2);
    if (proposer !== 'member 0') {
      scene.before(({ what }) => what.kind === 'request' && what.request.kind === 'propose');
      scene.lose(({ what }) => what.kind === 'request' && what.request.kind === 'propose');
    }
    scene.finish();
    expect(scene.statuses).toEqual(['finished', 'finished', 'left out', 'finished']);
    expect(scene.slots.at(-1)).toEqual([0, 1, 3]);
    // The one that was left out has taken no step that the others have not.
    const theirs = scene.stepsOf(0);
    expect(theirs).toHaveLength(8);
    expect(scene.stepsOf(2)).toEqual(theirs.slice(0, scene.stepsOf(2).length));
  });
