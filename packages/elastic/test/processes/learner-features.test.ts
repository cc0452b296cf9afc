// Processes that join as learners in jobs whose features have state of their own: batch norms over all ranks, hooks,
// a scale of losses, accumulated gradients. A founder is killed after the join. The replay, whose ranks all begin at
// once, has to end with the same bits.
import { expect, it } from 'vitest';
import type { Plan } from '../fixtures/train.ts';
import { checkReplay, planOf } from '../support/jobs.ts';

const features: Record<string, Partial<Plan>> = {
  'int8 between hosts': { hook: 'int8' },
  'batch norms, PowerSGD, scaled losses and several micro-batches': {
    ...{ syncBatchNorm: true, hook: 'powerSGD', scaled: true, microBatch: 2 },
  },
};

const planWith = (feature: Partial<Plan>) =>
  planOf(3, {
    ...{ epochs: 10_000, stepMs: 10, ballast: 1 << 18, joins: { 3: 0 } },
    options: { learn: true },
    faults: { 1: { step: 8, view: 1, at: 'averaged', do: 'SIGKILL' } },
    until: { size: 3, steps: 8, view: 2 },
    ...feature,
  });

/** Runs the job, and returns what the process that has joined got. */
async function stateOfJoiner(feature: Partial<Plan>) {
  const ends = await checkReplay(4, planWith(feature));
  expect([...ends[0]!.sizes].sort()).toEqual([3, 3, 4]);
  return ends.at(-1)!.states[0]!;
}

for (const [name, feature] of Object.entries(features))
  it(`${name}: a learner joins, and a founder is lost afterwards`, async () => {
    const { learned } = await stateOfJoiner(feature);
    expect(learned!.steps).toBeGreaterThan(0);
  });

it('the state of a spread optimizer is sent while the members wait', async () => {
  const { learned, sentBytes } = await stateOfJoiner({ zero: true });
  expect(learned).toBe(null);
  expect(sentBytes).toBeGreaterThan(1 << 20);
});
