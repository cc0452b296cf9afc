// Trains a CNN whose batch norm uses the statistics of all ranks' batches together.
import { loopbackGroups } from '@ringwise/collectives';
import { values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { convertSyncBatchNorm } from '../../src/index.ts';
import { cnnAlone, makeCnn } from '../fixtures/cnn.ts';
import { largestDifference } from '../support/ranks.ts';

const fixture = new URL('../fixtures/cnn.ts', import.meta.url);

describe('trains as one process on the joined batch, running statistics included', () => {
  for (const counts of [[3], [3, 3], [1, 4], [2, 1, 3], [2, 2, 2, 2], [3, 1, 4, 2]])
    it(`batches of ${counts.join(', ')}`, async () => {
      const ranks = values<Float32Array>(
        await withRanks(counts.length, fixture, 'trainCnn', { args: [counts] }),
      );
      const expected = cnnAlone(counts.reduce((a, b) => a + b, 0));
      for (const state of ranks) {
        expect(state).toEqual(ranks[0]);
        expect(largestDifference(state, expected)).toBeLessThan(1e-5);
      }
    });
});

it('leaves an empty batch out', async () => {
  // The batches 0, 6 and 2, 8 have the mean 4 and squared distances of 16 + 4 + 4 + 16 = 40.
  const ranks = values<number[][]>(await withRanks(3, fixture, 'withEmptyBatch'));
  for (const [rank, [out, mean, variance]] of ranks.entries()) {
    expect(out).toHaveLength(rank === 1 ? 0 : 2);
    for (const [i, value] of out!.entries()) expect(value).toBeCloseTo((rank + 6 * i - 4) / Math.sqrt(10), 6);
    expect(mean).toEqual([4]);
    expect(variance![0]).toBeCloseTo(40 / 3, 5);
  }
});

it('exchanges counts, moments and sums of gradients', async () => {
  for (const rank of values<number[][]>(await withRanks(3, fixture, 'exchange')))
    expect(rank).toEqual([[9], [0, 6, 3, 2, 6, 3, 4, 6, 3], [3, 3]]);
});

it('needs a group that may block, and a model with layers', async () => {
  const groups = loopbackGroups(2);
  await expect(convertSyncBatchNorm(makeCnn(0), groups[0]!)).rejects.toMatchObject({
    code: 'ERR_DDP_INVALID',
  });
  await expect(convertSyncBatchNorm({} as never, groups[0]!)).rejects.toMatchObject({
    code: 'ERR_DDP_INVALID',
  });
  await Promise.all(groups.map((group) => group.close()));
});
