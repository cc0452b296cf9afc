// Race 7, the members: one process joins in the step in which a member is lost; the joiner dies before it has the
// state; all members that have the state die before they have given it.
import { expect, test } from 'vitest';
import { Scene } from '../../../support/simulation/scene.ts';

/** Founds a job of three that a fourth process wants to join after step 3. */
function joining(): Scene {
  const scene = new Scene({ target: 12 }).untilApplied(0, 3);
  scene.world.startProcess(3);
  return scene;
}

test('a join and a loss in one step: the others go on with the joiner, and each step counts once', () => {
  const scene = joining()
    .until(({ what }) => what.kind === 'wish seen')
    .kill(1)
    .finish();
  expect(scene.statuses).toEqual(['finished', 'killed', 'finished', 'finished']);
  expect(scene.slots.at(-1)).toEqual([0, 2, 3]);
  expect(scene.stepsOf(2)).toEqual(scene.stepsOf(0));
  const { base, steps } = scene.world.members[3]!;
  expect(base).toBeGreaterThan(0);
  expect(steps).toEqual(scene.stepsOf(0).slice(base));
});

test('a loss in the vote that lets the joiner in', () => {
  const scene = joining().until(({ what }) => what.kind === 'wish seen');
  const { op } = scene.world.members[0]!;
  scene.until(
    ({ member, what }) => member === 0 && what.kind === 'op ends' && what.op > op && what.op % 2 === 0,
  );
  scene.kill(2).finish();
  expect(scene.statuses).toEqual(['finished', 'finished', 'killed', 'finished']);
  expect(scene.stepsOf(1)).toEqual(scene.stepsOf(0));
});

test('the joiner dies in the view that it has joined, before it has the state', () => {
  const scene = joining();
  scene.before(({ member, what }) => member === 3 && what.kind === 'start' && what.op === 0).kill(3);
  scene.finish();
  expect(scene.statuses).toEqual(['finished', 'finished', 'finished', 'killed']);
  expect(scene.slots).toEqual([
    [0, 1, 2],
    [0, 1, 2, 3],
    [0, 1, 2],
  ]);
  for (const member of [1, 2]) expect(scene.stepsOf(member)).toEqual(scene.stepsOf(0));
});

test('all that have the state die before the joiner has it: the job ends with a sentence', () => {
  const scene = joining();
  scene.before(({ member, what }) => member === 3 && what.kind === 'start' && what.op === 0).kill(0, 1, 2);
  scene.finish();
  expect(scene.statuses[3]).toBe('job ended');
  expect(scene.world.members[3]!.ending).toContain('are lost');
  expect(scene.stepsOf(3)).toEqual([]);
});
