import { expect, it } from 'vitest';
import { BlockRandomSampler } from '../../../src/index.ts';

const lengths = [5, 0, 3, 8, 1];
const all = Array.from({ length: 17 }, (_, i) => i);
const blockOf = (sample: number) => (sample < 5 ? 0 : sample < 8 ? 2 : sample < 16 ? 3 : 4);
const sorted = (samples: readonly number[]) => [...samples].sort((a, b) => a - b);

it('gives every sample once, block by block, in another order in each epoch', () => {
  const sampler = new BlockRandomSampler(lengths, { seed: 1 });
  const epochs = [0, 1, 2, 3].map((epoch) => {
    sampler.setEpoch(epoch);
    return [...sampler];
  });
  for (const samples of epochs) {
    expect(sorted(samples)).toEqual(all);
    const blocks = samples.map(blockOf).filter((block, i, blocks) => block !== blocks[i - 1]);
    expect(blocks).toHaveLength(4);
  }
  const orders = new Set(epochs.map((samples) => samples.join()));
  const blockOrders = new Set(epochs.map((samples) => [...new Set(samples.map(blockOf))].join()));
  expect(orders.size).toBe(4);
  expect(blockOrders.size).toBeGreaterThan(1);
  expect(epochs.some((samples) => samples.filter((s) => s < 5).join() !== '0,1,2,3,4')).toBe(true);
});

it('shares an epoch out over ranks, and resumes at another world size', () => {
  const samplersOf = (replicas: number, dropLast = false) =>
    Array.from(
      { length: replicas },
      (_, rank) => new BlockRandomSampler(lengths, { replicas, rank, dropLast }),
    );
  const parts = samplersOf(3).map((sampler) => [...sampler]);
  expect(parts.map((part) => part.length)).toEqual([6, 6, 6]);
  expect(new Set(parts.flat())).toEqual(new Set(all));
  const cut = samplersOf(3, true).flatMap((sampler) => [...sampler]);
  expect([cut.length, new Set(cut).size]).toEqual([15, 15]);

  const before = samplersOf(3);
  const seen = before.flatMap((sampler) => {
    const taken = [...sampler].slice(0, 2);
    sampler.advance(2);
    return taken;
  });
  const after = samplersOf(1)[0]!;
  after.load(before[0]!.state());
  expect(sorted([...seen, ...after])).toEqual(all);
});

it('refuses blocks of no length', () => {
  expect(() => new BlockRandomSampler([0, 0])).toThrow('nothing to sample from');
  expect(() => new BlockRandomSampler([3, -1])).toThrow('BlockRandomSampler: length 1');
});
