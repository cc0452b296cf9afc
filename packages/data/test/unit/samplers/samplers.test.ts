import { describe, expect, it } from 'vitest';
import {
  BatchSampler,
  DistributedSampler,
  RandomSampler,
  randperm,
  SequentialSampler,
  SubsetRandomSampler,
  WeightedRandomSampler,
} from '../../../src/index.ts';

describe('SequentialSampler', () => {
  it('counts up in every pass, to nothing where there is nothing', () => {
    const sampler = new SequentialSampler(4);
    expect([...sampler]).toEqual([0, 1, 2, 3]);
    expect([...sampler]).toEqual([0, 1, 2, 3]);
    expect([...new SequentialSampler(0)]).toEqual([]);
  });
});

describe('RandomSampler', () => {
  it('draws a new order each pass, the same ones in every run', () => {
    const sampler = new RandomSampler(20, { seed: 5 });
    expect([...sampler]).toEqual([...randperm(20, 5)]);
    expect([...sampler]).toEqual([...randperm(20, 6)]);
    expect(sampler.epoch).toBe(1);
    sampler.setEpoch(0);
    expect([...sampler]).toEqual([...randperm(20, 5)]);
  });

  it.each([
    [7, { replacement: true }, [5, 3, 3, 4, 0, 6, 2]],
    [5, { numSamples: 13 }, [1, 0, 3, 4, 2, 0, 1, 2, 4, 3, 1, 4, 3]],
    [5, { numSamples: 2 }, [1, 0]],
    [200_000_000, { replacement: true, numSamples: 4 }, [165658986, 103761048, 41471737, 7553667]],
  ])('draws from %d with %j what PyTorch draws', (length, options, want) => {
    const sampler = new RandomSampler(length, { seed: 3, ...options });
    expect([...sampler]).toEqual(want);
    expect(sampler.length).toBe(want.length);
    expect(() => new RandomSampler(length, { numSamples: 0 })).toThrow(
      'RandomSampler: numSamples: expected an integer from 1 to 2147483647, got 0.',
    );
  });

  it('goes on from its state with another number of samples than indices', () => {
    const make = (): RandomSampler => new RandomSampler(3, { seed: 3, numSamples: 7 });
    const [whole, first, second] = [make(), make(), make()];
    const all = [...whole];
    const pass = first[Symbol.iterator]();
    for (let i = 0; i < 4; i++) pass.next();
    first.advance(4);
    second.load(first.state());
    expect([...second]).toEqual(all.slice(4));
  });

  it('refuses a length for which PyTorch computes another permutation', () => {
    const got = 'length: expected an integer from 1 to 214748363, got 300000000';
    expect(() => new RandomSampler(3e8)).toThrow(got);
    expect(() => new DistributedSampler(3e8, { replicas: 2, rank: 0 })).toThrow(got);
    expect(new DistributedSampler(3e8, { replicas: 2, rank: 0, shuffle: false }).length).toBe(1.5e8);
  });

  it('refuses an empty data set', () => {
    expect(() => new RandomSampler(0)).toThrow(
      'expected a length of at least 1, got 0. Is the data set empty?',
    );
  });
});

describe('SubsetRandomSampler', () => {
  it('refuses indices that it would change', () => {
    for (const indices of [[0, 1.5], [-1], ['1'], [2 ** 31], BigInt64Array.of(1n), { length: 1 }])
      expect(() => new SubsetRandomSampler(indices as never)).toThrow(
        expect.objectContaining({
          code: 'ERR_DATA_ARGUMENT',
          message: expect.stringMatching(
            /^SubsetRandomSampler: indices\[\d\]: expected an integer from 0 to/,
          ),
        }),
      );
  });

  it('permutes the given indices', () => {
    const indices = [50, 7, 9, 31];
    const sampler = new SubsetRandomSampler(indices, { seed: 1 });
    const order = [...sampler];
    expect(order).toEqual([...randperm(4, 1)].map((position) => indices[position]));
    expect(sampler.length).toBe(4);
  });
});

describe('WeightedRandomSampler', () => {
  function frequencies(order: Iterable<number>, kinds: number): number[] {
    const counts = new Array<number>(kinds).fill(0);
    for (const index of order) counts[index]! += 1;
    return counts;
  }

  it.each([1e308, 5e-324])('draws by weights whose sum is no exact number: %s', (weight) => {
    for (const count of frequencies(new WeightedRandomSampler([weight, weight, weight], 9000), 3)) {
      expect(count).toBeGreaterThan(2700);
      expect(count).toBeLessThan(3300);
    }
  });

  it('draws in proportion to the weights', () => {
    const counts = frequencies(new WeightedRandomSampler([1, 0, 2, 5], 8000), 4);
    expect(counts[1]).toBe(0);
    expect(Math.abs(counts[0]! - 1000)).toBeLessThan(150);
    expect(Math.abs(counts[2]! - 2000)).toBeLessThan(200);
    expect(Math.abs(counts[3]! - 5000)).toBeLessThan(250);
  });

  it('never repeats an index or takes one of weight 0 without replacement', () => {
    const sampler = new WeightedRandomSampler([3, 0, 1, 2, 0], 3, { replacement: false });
    for (let pass = 0; pass < 20; pass++) expect([...sampler].sort()).toEqual([0, 2, 3]);
  });

  it('prefers heavy indices without replacement', () => {
    const sampler = new WeightedRandomSampler([9, 1], 1, { replacement: false });
    const firsts = Array.from({ length: 1000 }, () => [...sampler][0]!);
    expect(Math.abs(frequencies(firsts, 2)[0]! - 900)).toBeLessThan(60);
  });

  it('refuses weights that are no weights, and more draws than there are indices', () => {
    expect(() => new WeightedRandomSampler([1, -1], 1)).toThrow(
      'weight 1: expected a finite number of at least 0, got -1',
    );
    expect(() => new WeightedRandomSampler([1, Number.NaN], 1)).toThrow('got NaN');
    expect(() => new WeightedRandomSampler([0, 0], 1)).toThrow('expected at least one above 0');
    expect(() => new WeightedRandomSampler([1, 0], 2, { replacement: false })).toThrow('from 1 to 1, got 2');
  });
});

describe('BatchSampler', () => {
  it('cuts into batches and keeps or drops the rest', () => {
    expect([...new BatchSampler([5, 6, 7, 8, 9], 2)]).toEqual([[5, 6], [7, 8], [9]]);
    expect([...new BatchSampler([5, 6, 7, 8, 9], 2, { dropLast: true })]).toEqual([
      [5, 6],
      [7, 8],
    ]);
    expect([...new BatchSampler([5, 6, 7, 8], 2)]).toHaveLength(2);
  });

  it('knows its length', () => {
    expect(new BatchSampler(new SequentialSampler(5), 2).length).toBe(3);
    expect(new BatchSampler(new SequentialSampler(5), 2, { dropLast: true }).length).toBe(2);
  });

  it('refuses a batch size below 1', () => {
    expect(() => new BatchSampler([1], 0)).toThrow('batchSize: expected an integer of at least 1, got 0');
  });
});
