// Race 6: the process that replaces a member is there before the others have noticed the death of the member; ids of
// processes come again.
import { expect, test } from 'vitest';
import { hasEnded, ownProcess } from '../../../../src/membership/processes.ts';
import { Scene } from '../../../support/simulation/scene.ts';

test('the others admit it into the slot in place of the dead one, which no launcher has reported', () => {
  const scene = new Scene({ timing: { noticeMs: () => 100, endedMs: () => null } });
  scene.untilApplied(0, 3).kill(1);
  scene.world.startProcess(1);
  scene.until(() => scene.world.store.wishes.length === 4);
  expect(scene.views).toHaveLength(1);
  scene.finish();
  expect(scene.statuses).toEqual(['finished', 'killed', 'finished', 'finished']);
  expect(scene.views).toHaveLength(2);
  // The dead one is not waited for, which would take 200 ms of the simulated time: its slot has a successor.
  expect(Math.max(...scene.world.changesMs)).toBeLessThan(200);
  expect(scene.views[1]).toMatchObject({ joined: ['m3'], lost: ['m1'] });
  expect(scene.views[1]!.members.map(({ id, slot }) => [id, slot])).toEqual([
    ['m0', 0],
    ['m3', 1],
    ['m2', 2],
  ]);
});

test('of two that want the slot the last one gets it', () => {
  const scene = new Scene({ timing: { noticeMs: () => 100, endedMs: () => null } });
  scene.untilApplied(0, 3).kill(1);
  scene.world.startProcess(1);
  scene.until(() => scene.world.store.wishes.length === 4).kill(3);
  scene.world.startProcess(1);
  scene.finish();
  expect(scene.statuses).toEqual(['finished', 'killed', 'finished', 'killed', 'finished']);
  for (const slots of scene.slots) expect(slots).toEqual([0, 1, 2]);
  expect(scene.views.at(-1)!.members.map(({ id }) => id)).toEqual(['m0', 'm4', 'm2']);
});

test('a process with the id of another one is not taken for it', () => {
  const own = ownProcess();
  expect(hasEnded(own)).toBe(false);
  expect(hasEnded(null)).toBe(false);
  if (own === null) return;
  const [namespace, pid, start] = own.split('/');
  expect(hasEnded(`${namespace}/${pid}/${Number(start) + 1}`)).toBe(true);
  expect(hasEnded(`${namespace}/4194304/1`)).toBe(true);
  // The same id in another namespace may be any process.
  expect(hasEnded(`0/${pid}/1`)).toBe(false);
});
