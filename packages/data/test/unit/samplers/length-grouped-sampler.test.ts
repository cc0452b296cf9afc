import { describe, expect, it } from 'vitest';
import {
  BatchSampler,
  DataLoader,
  LengthGroupedSampler,
  randperm,
  type SamplerState,
} from '../../../src/index.ts';

const count = 1003;
const lengths = [...randperm(count, 7)].map((i) => i % 500);
const dataset = { length: count, get: (index: number) => index };

interface Setting {
  readonly batchSize: number;
  readonly replicas: number;
  readonly epoch?: number;
  readonly dropLast?: boolean;
}

function ranks({ batchSize, replicas, epoch = 0, dropLast = false }: Setting) {
  return Array.from({ length: replicas }, (_, rank) => {
    const sampler = new LengthGroupedSampler(lengths, { batchSize, replicas, rank, seed: 5, dropLast });
    sampler.setEpoch(epoch);
    return new DataLoader(dataset, { sampler, batchSize, collate: (batch) => batch });
  });
}

const batchesOf = (setting: Setting) => ranks(setting).map((loader) => [...loader]);
const ascending = (a: number, b: number) => a - b;

/** Returns the largest minus the smallest length of these samples. */
function spread(samples: readonly number[]): number {
  const all = samples.map((sample) => lengths[sample]!);
  return Math.max(...all) - Math.min(...all);
}

describe('LengthGroupedSampler', () => {
  it('gives all ranks samples of similar length in the same step', () => {
    for (const [batchSize, replicas] of [
      [8, 1],
      [4, 2],
      [2, 4],
    ] as const) {
      const parts = batchesOf({ batchSize, replicas });
      const full = Math.floor(count / 8);
      for (let step = 0; step < full; step++) {
        // A pool has 400 of the 1003 samples; in it, 8 neighbours span about 10 of 500 lengths.
        expect(spread(parts.flatMap((batches) => batches[step]!))).toBeLessThan(60);
      }
      const means = Array.from({ length: full }, (_, step) => lengths[parts[0]![step]![0]!]!);
      expect(means).not.toEqual(means.toSorted(ascending));
      expect(means).not.toEqual(means.toSorted(ascending).reverse());
    }
  });

  it('makes no pool so small that its groups mix lengths', () => {
    const sampler = new LengthGroupedSampler(lengths.slice(0, 51 * 8), { batchSize: 8 });
    for (const batch of new BatchSampler(sampler, 8)) expect(spread(batch)).toBeLessThan(100);
  });

  it('covers every sample once, padded from its own beginning or cut to equal shares', () => {
    for (const replicas of [1, 2, 3, 5]) {
      const padded = batchesOf({ batchSize: 4, replicas }).map((batches) => batches.flat());
      expect(padded.map((part) => part.length)).toEqual(Array(replicas).fill(Math.ceil(count / replicas)));
      expect(new Set(padded.flat()).size).toBe(count);
      const cut = batchesOf({ batchSize: 4, replicas, dropLast: true }).flat(2);
      expect(cut).toHaveLength(Math.floor(count / replicas) * replicas);
      expect(new Set(cut).size).toBe(cut.length);
    }
  });

  it('is the same in every run, and brings other samples together in another epoch', () => {
    const setting = { batchSize: 4, replicas: 2 };
    expect(batchesOf(setting)).toEqual(batchesOf(setting));
    const together = (epoch: number) =>
      new Set(batchesOf({ ...setting, epoch })[0]!.map((batch) => batch.toSorted(ascending).join()));
    const [first, second] = [together(0), together(1)];
    expect([...first].filter((batch) => second.has(batch))).toEqual([]);
  });

  it('resumes exactly at the same world size, and without losing or repeating a sample at another', () => {
    const setting = { batchSize: 4, replicas: 2, epoch: 3 };
    const whole = batchesOf(setting);
    const before = ranks(setting);
    for (const loader of before) {
      let steps = 0;
      for (const _ of loader) if (++steps === 50) break;
    }
    const states = before.map((loader) => loader.state());
    expect(states[1]).toEqual(states[0]);
    const state = JSON.parse(JSON.stringify(states[0])) as SamplerState;
    const resume = (after: Setting) =>
      ranks(after).map((loader) => {
        loader.load(state);
        return [...loader];
      });
    expect(resume(setting)).toEqual(whole.map((batches) => batches.slice(50)));
    const seen = whole.flatMap((batches) => batches.slice(0, 50)).flat();
    const rest = resume({ batchSize: 5, replicas: 3 }).flat(2);
    expect(rest).toHaveLength(Math.ceil((count - seen.length) / 3) * 3);
    expect(new Set([...seen, ...rest]).size).toBe(count);
  });

  it('leaves fewer samples than a group as they come', () => {
    const sampler = new LengthGroupedSampler([3, 1, 2], { batchSize: 8 });
    expect([...new BatchSampler(sampler, 8)].map((batch) => batch.sort(ascending))).toEqual([[0, 1, 2]]);
  });

  it('refuses wrong arguments, and the state of another kind of sampler', () => {
    const make = (given: number[], batchSize = 2) => new LengthGroupedSampler(given, { batchSize });
    expect(() => make([])).toThrow('LengthGroupedSampler: nothing to sample from');
    expect(() => make([1], 0)).toThrow(
      'LengthGroupedSampler: batchSize: expected an integer of at least 1, got 0',
    );
    expect(() => make([1, Number.NaN])).toThrow('lengths[1]: expected a finite number, got NaN');
    expect(() => make([1, 2]).load({ seed: 0, epoch: 0, consumed: 0, length: 2 })).toThrow(
      'LengthGroupedSampler.load: groupSize of the state does not fit; expected an integer of at least 1, got undefined',
    );
  });
});
