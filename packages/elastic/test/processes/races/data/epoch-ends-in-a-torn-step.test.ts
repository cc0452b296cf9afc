// Race 15: a rank is lost in the last step of an epoch, which is short and has fewer micro-batches than there are
// ranks.
import { expect, it } from 'vitest';
import { checkReplay, planOf } from '../../../support/jobs.ts';

it('the step runs again, the epoch ends once, and each sample counts once', async () => {
  // 50 samples are four steps of two micro-batches, and one of a part of a micro-batch. Five ranks: three of them have
  // nothing to train on in any step, and four in the last one. The first to be lost is the one that has the samples.
  const faults = {
    0: { step: 4, at: 'backward', do: 'SIGKILL' },
    3: { step: 9, at: 'entering', do: 'SIGKILL' },
  } as const;
  const ends = await checkReplay(5, planOf(5, { microBatch: 6, faults }));
  for (const { sizes, losses } of ends) {
    expect(sizes).toEqual([5, 4, 3]);
    expect(losses).toHaveLength(10);
  }
});
