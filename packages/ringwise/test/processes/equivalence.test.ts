// Trains in real processes through the whole chain: files or drawn digits, loader, sampler, tensors, DDP, host backend.
import { createHash } from 'node:crypto';
import { testData, values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { History, Run } from '../support/equivalence-ranks.ts';

const realMnist = testData('mnist');
const data = realMnist === null ? {} : { data: realMnist };
const samples = 180; // no padding on 2 or 3 ranks; the last batch of an epoch is short

async function trained(size: number, run: Pick<Run, 'epochs' | 'batchSize'>): Promise<History[]> {
  const args = [{ ...data, samples, ...run } satisfies Run];
  return values<History>(
    await withRanks(size, new URL('../support/equivalence-ranks.ts', import.meta.url), 'train', { args }),
  );
}

/** Returns a hash of the parameters before the first step and after each step. Hashes are equal if all bits are. */
function bitsOf({ parameters }: History): string[] {
  return parameters.map((values) => createHash('sha256').update(values).digest('hex'));
}

function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Array.from(a).reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i]!)), 0);
}

describe.each([2, 3])('training on %i ranks', (size) => {
  const epochs = 2;
  const batchSize = 8;

  it('starts from rank 0, keeps replicas bitwise equal, and equals one rank with the joined batches', async () => {
    const ranks = await trained(size, { epochs, batchSize });
    const [first] = ranks as [History];
    expect(largestDifference(first.parameters[0]!, first.own)).toBe(0);
    for (const other of ranks.slice(1)) {
      expect(largestDifference(other.own, first.own)).toBeGreaterThan(0.01);
      expect(bitsOf(other)).toEqual(bitsOf(first));
    }

    const [alone] = (await trained(1, { epochs, batchSize: batchSize * size })) as [History];
    expect(alone.losses).toHaveLength(epochs * Math.ceil(samples / size / batchSize));
    const losses = first.losses.map((_, step) =>
      ranks.reduce((sum, rank) => sum + rank.losses[step]! / size, 0),
    );
    expect(largestDifference(losses, alone.losses)).toBeLessThan(1e-4);
    for (const [step, parameters] of alone.parameters.entries())
      expect(largestDifference(first.parameters[step]!, parameters), `step ${step}`).toBeLessThan(1e-4);
    expect(alone.losses.at(-1)).toBeLessThan(alone.losses[0]!);
  });
});

it('gives the same bits in every run', async () => {
  const run = { epochs: 1, batchSize: 8 };
  const [first, again] = [await trained(2, run), await trained(2, run)];
  expect(again.map(bitsOf)).toEqual(first.map(bitsOf));
  expect(again.map(({ losses }) => losses)).toEqual(first.map(({ losses }) => losses));
});
