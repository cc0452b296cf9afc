// Race 1: the vote is complete on one member and not on another one, and the member that was to send last dies.
import { expect, test } from 'vitest';
import { Scene } from '../../../support/simulation/scene.ts';

const steps = 3;

for (const seer of [0, 1, 2])
  for (const dead of [0, 1, 2].filter((member) => member !== seer))
    test(`member ${seer} has the vote, member ${dead} dies: the other one commits the step as well`, () => {
      const other = 3 - seer - dead;
      const scene = new Scene()
        .before(({ member, what }) => member === 0 && what.kind === 'op ends' && what.op === 2 * steps)
        .lose(({ member, what }) => member !== seer && what.kind === 'op ends')
        .untilApplied(seer, steps);
      expect(scene.stepsOf(other)).toHaveLength(steps - 1);
      scene.kill(dead).finish();
      expect(scene.views[1]).toMatchObject({ decision: 'commit', finalSteps: steps, lost: [`m${dead}`] });
      // With the averages of view 0, which both hold, and nothing a second time.
      expect(scene.stepsOf(other)[steps - 1]).toBe(`0:${steps - 1}`);
      expect(scene.stepsOf(other)).toEqual(scene.stepsOf(seer));
      expect(scene.stepsOf(other)[steps]).toBe(`1:${steps}`);
      expect([scene.statuses[seer], scene.statuses[other]]).toEqual(['finished', 'finished']);
    });
