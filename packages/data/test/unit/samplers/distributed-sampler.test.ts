import { describe, expect, it, vi } from 'vitest';
import {
  BatchSampler,
  DistributedSampler,
  type DistributedSamplerOptions,
  randperm,
} from '../../../src/index.ts';

type Shared = Omit<DistributedSamplerOptions, 'replicas' | 'rank'>;

function ofAllRanks(length: number, replicas: number, options: Shared = {}, epoch = 0): number[][] {
  return Array.from({ length: replicas }, (_, rank) => {
    const sampler = new DistributedSampler(length, { replicas, rank, ...options });
    sampler.setEpoch(epoch);
    return [...sampler];
  });
}

/** Computes the indices as torch.utils.data.DistributedSampler does. */
function transcribed(
  length: number,
  replicas: number,
  rank: number,
  options: Shared,
  epoch: number,
): number[] {
  const { shuffle = true, seed = 0, dropLast = false } = options;
  const samples =
    dropLast && length % replicas !== 0
      ? Math.ceil((length - replicas) / replicas)
      : Math.ceil(length / replicas);
  const total = samples * replicas;
  let indices = shuffle ? [...randperm(length, seed + epoch)] : [...Array(length).keys()];
  if (dropLast) indices = indices.slice(0, total);
  else {
    const padding = total - indices.length;
    if (padding <= indices.length) indices.push(...indices.slice(0, padding));
    else {
      const times = Math.ceil(padding / indices.length);
      const repeated = Array.from({ length: times }, () => indices).flat();
      indices = [...indices, ...repeated.slice(0, padding)];
    }
  }
  return indices.filter((_, position) => position % replicas === rank);
}

describe('DistributedSampler', () => {
  it("gives PyTorch's indices", () => {
    expect(ofAllRanks(10, 3)).toEqual([
      [4, 5, 0, 2],
      [1, 3, 8, 4],
      [7, 9, 6, 1],
    ]);
    expect(ofAllRanks(10, 3, {}, 1)).toEqual([
      [5, 2, 9, 4],
      [6, 0, 3, 5],
      [1, 8, 7, 6],
    ]);
    expect(ofAllRanks(10, 3, { dropLast: true })).toEqual([
      [4, 5, 0],
      [1, 3, 8],
      [7, 9, 6],
    ]);
    expect(ofAllRanks(10, 3, { shuffle: false })).toEqual([
      [0, 3, 6, 9],
      [1, 4, 7, 0],
      [2, 5, 8, 1],
    ]);
    expect(ofAllRanks(2, 5, { shuffle: false })).toEqual([[0], [1], [0], [1], [0]]);
  });

  it('equals a transcription of PyTorch for many lengths, world sizes, seeds and epochs', () => {
    for (let length = 1; length <= 33; length++) {
      for (const replicas of [1, 2, 3, 4, 5, 7, 8, 16, 40, 100]) {
        const options = { shuffle: length % 4 !== 0, seed: length * 7, dropLast: length % 3 === 0 };
        const epoch = replicas % 3;
        const expected = Array.from({ length: replicas }, (_, rank) =>
          transcribed(length, replicas, rank, options, epoch),
        );
        expect(ofAllRanks(length, replicas, options, epoch)).toEqual(expected);
      }
    }
  });

  it('has the length that it yields', () => {
    for (const dropLast of [false, true]) {
      const sampler = new DistributedSampler(10, { replicas: 4, rank: 3, dropLast });
      expect([...sampler]).toHaveLength(sampler.length);
    }
  });

  it('makes 938 steps of 60,000 samples on 2 ranks with batches of 32', () => {
    const sampler = new DistributedSampler(60_000, { replicas: 2, rank: 1 });
    expect(new BatchSampler(sampler, 32).length).toBe(938);
  });

  it('repeats its order without setEpoch and changes it with', () => {
    const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const sampler = new DistributedSampler(100, { replicas: 2, rank: 0 });
    const first = [...sampler];
    expect([...sampler]).toEqual(first);
    expect(warning).toHaveBeenCalledTimes(1);
    warning.mockRestore();
    expect(sampler.epoch).toBe(0);
    sampler.setEpoch(1);
    expect(sampler.epoch).toBe(1);
    expect([...sampler]).not.toEqual(first);
    sampler.setEpoch(0);
    expect([...sampler]).toEqual(first);
  });

  it.each([
    [0, { replicas: 2, rank: 0 }, 'DistributedSampler: nothing to sample from'],
    [-1, { replicas: 2, rank: 0 }, 'DistributedSampler: length'],
    [10, { replicas: 0, rank: 0 }, 'DistributedSampler: replicas: expected an integer of at least 1, got 0.'],
    [10, { replicas: 3, rank: 3 }, 'DistributedSampler: rank: expected an integer from 0 to 2, got 3.'],
    [10, { replicas: 3, rank: -1 }, 'DistributedSampler: rank: expected an integer from 0 to 2, got -1.'],
    [
      10,
      { replicas: 3, rank: 0, seed: -5 },
      'DistributedSampler: seed: expected an integer of at least 0, got -5.',
    ],
  ])('refuses length %d with %o', (length, options, message) => {
    expect(() => new DistributedSampler(length, options)).toThrow(message);
  });

  it('refuses an epoch that is no whole number', () => {
    const sampler = new DistributedSampler(4, { replicas: 2, rank: 0 });
    expect(() => sampler.setEpoch(Number.NaN)).toThrow(
      'setEpoch: epoch: expected an integer of at least 0, got NaN',
    );
  });
});
