import { describe, expect, it } from 'vitest';
import { concatDatasets, DataLoader, shard } from '../../../src/index.ts';

const counting = (length: number) => Array.from({ length }, (_, i) => i);

async function* slowly(length: number): AsyncGenerator<number> {
  for (const i of counting(length)) yield await Promise.resolve(i);
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const sample of stream) all.push(sample);
  return all;
}

describe('shard', () => {
  it('shares a stream out in turn, again in every pass', () => {
    const part = shard(new Set(counting(10)), { replicas: 3, rank: 1 });
    expect([...part]).toEqual([1, 4, 7]);
    expect([...part]).toEqual([1, 4, 7]);
    expect([...shard(counting(10), { replicas: 3, rank: 0 })]).toEqual([0, 3, 6, 9]);
  });

  it.each([1, 2, 3, 4, 7])('gives every sample to one of %d ranks, or equally many to each', (replicas) => {
    for (let length = 0; length < 15; length++) {
      const parts = (dropLast: boolean) =>
        counting(replicas).map((rank) => [...shard(counting(length), { replicas, rank, dropLast })]);
      expect(
        parts(false)
          .flat()
          .sort((a, b) => a - b),
      ).toEqual(counting(length));
      for (const part of parts(true)) expect(part).toHaveLength(Math.floor(length / replicas));
      expect(
        parts(true)
          .flat()
          .every((sample) => sample < length - (length % replicas)),
      ).toBe(true);
    }
  });

  it('shares an asynchronous stream, also through a loader', async () => {
    expect(await collect(shard(slowly(7), { replicas: 2, rank: 0 }))).toEqual([0, 2, 4, 6]);
    expect(await collect(shard(slowly(7), { replicas: 2, rank: 0, dropLast: true }))).toEqual([0, 2, 4]);
    const loader = new DataLoader(shard(slowly(7), { replicas: 2, rank: 1 }), { batchSize: 2 });
    expect((await collect(loader)).map(({ data }) => [...data])).toEqual([[1, 3], [5]]);
  });

  it('reads no further than the end of the round of the sample that is asked for', () => {
    let read = 0;
    const endless = {
      *[Symbol.iterator]() {
        for (;;) yield read++;
      },
    };
    const [first] = shard(endless, { replicas: 2, rank: 0 });
    expect([first, read]).toEqual([0, 2]);
  });

  it('refuses a rank that is not there', () => {
    expect(() => shard([], { replicas: 2, rank: 2 })).toThrow(
      'shard: rank: expected an integer from 0 to 1, got 2',
    );
  });
});

describe('concatDatasets', () => {
  it('has the samples of all its parts in order, empty ones too', () => {
    const all = concatDatasets([
      { length: 2, get: (index) => index },
      { length: 0, get: (index) => index },
      { length: 3, get: (index) => Promise.resolve(10 + index) },
    ]);
    expect(all.length).toBe(5);
    expect(all.get(1)).toBe(1);
    expect(() => all.get(5)).toThrow('concatDatasets: index 5 is outside the data set');
    expect(() => all.get(-1)).toThrow('index -1 is outside');
  });

  it('takes arrays, and refuses anything else, and no parts at all', () => {
    expect(concatDatasets([['a'], ['b', 'c']]).get(2)).toBe('c');
    expect(() => concatDatasets([[1], new Set([1]) as never])).toThrow(
      'concatDatasets: datasets[1]: expected a data set with length and get(), or an array, got ',
    );
    expect(() => concatDatasets([])).toThrow(
      'concatDatasets: datasets: expected at least one data set, got none.',
    );
    expect(() => concatDatasets(new Set() as never)).toThrow(
      'concatDatasets: datasets: expected an array of',
    );
  });

  it('feeds a loader', async () => {
    const all = concatDatasets([
      { length: 2, get: (index) => index },
      { length: 3, get: (index) => Promise.resolve(10 + index) },
    ]);
    const batches = await collect(new DataLoader(all, { batchSize: 3 }));
    expect(batches.map(({ data }) => [...data])).toEqual([
      [0, 1, 10],
      [11, 12],
    ]);
  });
});
