// Features of DDP with state of their own, in jobs whose ranks are killed at each point of a step, leave and join. The
// replay of a job, in which no rank is lost, has to end with the same bits: what a step has changed that ran again
// counts once, and what a change of the view keeps or drops is the same on all ranks.
import { values } from '@ringwise/testing';
import { expect, it } from 'vitest';
import type { Plan, Trained } from '../fixtures/train.ts';
import { checkFeature } from '../support/features.ts';
import { planOf, run } from '../support/jobs.ts';

const features: Record<string, Partial<Plan>> = {
  // More ranks than micro-batches.
  'batch norms over all ranks, some of them without samples': { syncBatchNorm: true, microBatch: 6 },
  PowerSGD: { hook: 'powerSGD' },
  // The first steps overflow, until the scale is small enough.
  'scaled losses': { scaled: true },
};

for (const [name, feature] of Object.entries(features))
  it(`${name}: loses ranks at several points of a step, and gets one`, () => checkFeature(feature));

it('batch norms over all ranks train as those of one process with the whole batch', async () => {
  // The last step of an epoch has 6 samples: a whole micro-batch of 4 and a short one, beside a rank that has none.
  const parts = { samples: 54, dropout: 0 };
  const [whole] = values<Trained>(await run(1, planOf(1, { ...parts, batchNorm: true, microBatch: 12 })));
  const together = values<Trained>(await run(3, planOf(3, { ...parts, syncBatchNorm: true })));
  // Losses, because the bias before a batch norm has a gradient of rounding errors only, which Adam scales up.
  for (const { losses } of together)
    for (const [i, loss] of losses.entries()) expect(loss).toBeCloseTo(whole!.losses[i]!, 4);
});
