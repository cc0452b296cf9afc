// Race 3: two members die shortly one after the other: the second one between its report and the view, as the one that
// proposes the view, or right after its view is in the store.
import { expect, test } from 'vitest';
import type { Event } from '../../../support/simulation/parts.ts';
import { Scene } from '../../../support/simulation/scene.ts';

const isRequest = ({ what }: Event, kind: string) => what.kind === 'request' && what.request.kind === kind;

/** Ends all events, and checks that the members in `living` have gone on together, without the two others. */
function checkSurvivors(scene: Scene, living: readonly number[]): void {
  scene.finish();
  const slots = scene.slots.at(-1);
  expect(slots).toEqual(living);
  for (const member of living) {
    expect(scene.statuses[member]).toBe('finished');
    expect(scene.stepsOf(member)).toEqual(scene.stepsOf(living[0]!));
    expect(scene.stepsOf(member).map((content) => content.split(':')[1])).toEqual(
      Array.from({ length: 8 }, (_, step) => `${step}`),
    );
  }
}

test('1 ms after the first', () => {
  const scene = new Scene({ size: 4 }).untilApplied(0, 3).kill(3);
  const diedMs = scene.world.nowMs;
  scene.until(() => scene.world.nowMs >= diedMs + 1).kill(1);
  checkSurvivors(scene, [0, 2]);
});

test('between its report and the view', () => {
  const scene = new Scene({ size: 4 }).untilApplied(0, 3).kill(3);
  scene.until((event) => isRequest(event, 'report') && event.member === 2).kill(2);
  // The view that its report was for may still have it; the one after it has not.
  checkSurvivors(scene, [0, 1]);
});

test('as the one that is about to propose: another one does', () => {
  const scene = new Scene({ size: 4 }).untilApplied(0, 3).kill(3);
  scene.before((event) => isRequest(event, 'propose'));
  scene.lose((event) => isRequest(event, 'propose')).kill(0);
  expect(scene.views).toHaveLength(1);
  // Its report may still be read, so the next view may have it; the one after it has not.
  checkSurvivors(scene, [1, 2]);
});

test('as the one that has proposed: its view counts, and the next one is without it', () => {
  const scene = new Scene({ size: 4 }).untilApplied(0, 3).kill(3);
  scene.until((event) => isRequest(event, 'propose')).kill(0);
  expect(scene.slots[1]).toEqual([0, 1, 2]);
  checkSurvivors(scene, [1, 2]);
  expect(scene.slots).toEqual([
    [0, 1, 2, 3],
    [0, 1, 2],
    [1, 2],
  ]);
});
