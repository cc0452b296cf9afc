// Race 2: all averages of a step are complete on one member only, which dies before the next view or in it. No member
// has taken the step, so it runs again.
import { expect, test } from 'vitest';
import { Scene } from '../../../support/simulation/scene.ts';

const step = 2;
/** Of each step there are two operations: its averages and its vote. */
const averages = 2 * step + 1;

/** Returns the scene in which member 0 alone of four has the averages of the step, and member 3 has died. */
function torn(): Scene {
  const scene = new Scene({ size: 4 })
    .before(({ member, what }) => member === 0 && what.kind === 'op ends' && what.op === averages)
    .lose(({ member, what }) => member > 0 && what.kind === 'op ends')
    .until(({ member, what }) => member === 0 && what.kind === 'op ends');
  expect(scene.world.members.map((each) => each.averages !== null)).toEqual([true, false, false, false]);
  return scene.kill(3);
}

/** Checks that members have taken the step once, with averages of a later view. */
function checkRedone(scene: Scene, living: readonly number[]): void {
  for (const member of living) {
    expect(scene.statuses[member]).toBe('finished');
    expect(scene.stepsOf(member).slice(0, step)).toEqual(['0:0', '0:1']);
    expect(Number(scene.stepsOf(member)[step]!.split(':')[0])).toBeGreaterThan(0);
    expect(scene.stepsOf(member)).toEqual(scene.stepsOf(living[0]!));
  }
  for (const view of scene.views.slice(1)) expect(view).toMatchObject({ decision: 'redo', finalSteps: step });
}

test('the member with the averages lives: the step runs again on it, too', () => {
  const scene = torn().finish();
  expect(scene.slots).toEqual([
    [0, 1, 2, 3],
    [0, 1, 2],
  ]);
  checkRedone(scene, [0, 1, 2]);
});

test('it dies before it has reported', () => {
  checkRedone(torn().kill(0).finish(), [1, 2]);
});

test('it dies when it has reported', () => {
  const scene = torn()
    .until(({ what }) => what.kind === 'request' && what.request.kind === 'report')
    .kill(0)
    .finish();
  checkRedone(scene, [1, 2]);
});

test('it dies when the next view has it', () => {
  const scene = torn();
  scene.until(() => scene.views.length === 2).kill(0);
  checkRedone(scene.finish(), [1, 2]);
  expect(scene.slots.at(-1)).toEqual([1, 2]);
});

test('two members have the averages and are all that is left: they take the step without running it again', () => {
  const scene = new Scene({ size: 3 })
    .before(({ member, what }) => member === 0 && what.kind === 'op ends' && what.op === averages)
    .lose(({ member, what }) => member === 2 && what.kind === 'op ends')
    .until(({ member, what }) => member === 1 && what.kind === 'op ends')
    .kill(2)
    .finish();
  expect(scene.views[1]).toMatchObject({ decision: 'commit', finalSteps: step + 1 });
  for (const member of [0, 1]) expect(scene.stepsOf(member)[step]).toBe(`0:${step}`);
});
