// Race 18, the store: the host of the store is lost together with its ranks, also in a change of the view, and more
// than 64 members are lost at once.
import { describe, expect, test } from 'vitest';
import { Scene } from '../../../support/simulation/scene.ts';

describe('the host of the store and its ranks', () => {
  const checkMoved = (scene: Scene) => {
    scene.finish();
    const living = [1, 2, 4, 5];
    for (const member of living) {
      expect(scene.statuses[member]).toBe('finished');
      expect(scene.stepsOf(member)).toEqual(scene.stepsOf(1));
      expect(scene.stepsOf(member)).toHaveLength(8);
    }
    const [, second] = scene.world.hosts;
    expect(second!.store.views.at(-1)).toMatchObject({ epoch: 1, ended: null });
    expect(second!.store.views.at(-1)!.members.map(({ slot }) => slot)).toEqual(living);
  };
  // Slots 0 and 3 are on the host of the store, 1 and 4 on the second one, 2 and 5 on the third one.
  const onThreeHosts = () => new Scene({ size: 6, hosts: 3 }).untilApplied(1, 3);

  test('in a step', () => {
    const scene = onThreeHosts();
    scene.world.loseHost(0);
    checkMoved(scene);
  });

  test('while the members report the loss of one of them', () => {
    const scene = onThreeHosts().kill(3);
    scene.until(({ what }) => what.kind === 'request' && what.request.kind === 'report');
    scene.world.loseHost(0);
    checkMoved(scene);
  });

  test('while the members connect', () => {
    const scene = onThreeHosts().kill(3);
    scene.until(({ member }) => member === 1 && scene.world.members[1]!.machine.phase === 'connecting');
    scene.world.loseHost(0);
    checkMoved(scene);
  });
});

test('without another store the members end; none goes on alone', () => {
  const scene = new Scene().untilApplied(0, 3).kill(2);
  scene.until(({ what }) => what.kind === 'request' && what.request.kind === 'report');
  scene.world.hosts[0]!.isLost = true;
  for (const member of [0, 1]) scene.world.cutOffStore(member);
  scene.finish();
  expect(scene.statuses).toEqual(['no store', 'no store', 'killed']);
  expect(scene.stepsOf(1)).toEqual(scene.stepsOf(0));
});

test('100 of 200 members at once: the others agree on one view without them', () => {
  const scene = new Scene({ size: 200, target: 4 }).untilApplied(0, 2);
  const odd = Array.from({ length: 100 }, (_, k) => 2 * k + 1);
  const even = odd.map((slot) => slot - 1);
  scene.kill(...odd).finish();
  expect(scene.views).toHaveLength(2);
  expect(scene.slots[1]).toEqual(even);
  for (const member of even) expect(scene.stepsOf(member)).toEqual(scene.stepsOf(0));
  expect(scene.stepsOf(0)).toHaveLength(4);
});
