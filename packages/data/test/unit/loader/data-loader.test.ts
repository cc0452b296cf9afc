import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  ArrayDataset,
  DataLoader,
  type DataLoaderOptions,
  type Dataset,
  DistributedSampler,
  type Indices,
  type NdArray,
  randperm,
  SequentialSampler,
} from '../../../src/index.ts';

const numbers = (length: number) => ({ length, get: (index: number) => index });
const asList = { collate: (samples: number[]) => samples };

async function collect<B>(loader: AsyncIterable<B>): Promise<B[]> {
  const batches: B[] = [];
  for await (const batch of loader) batches.push(batch);
  return batches;
}

async function* streamOf(count: number): AsyncGenerator<number, void, undefined> {
  for (let i = 0; i < count; i++) yield i;
}

describe('DataLoader over a map-style data set', () => {
  it('gives batches in order, the last one shorter, one sample each by default', async () => {
    expect(await collect(new DataLoader(numbers(5), { batchSize: 2, ...asList }))).toEqual([
      [0, 1],
      [2, 3],
      [4],
    ]);
    expect(await collect(new DataLoader(numbers(2), asList))).toEqual([[0], [1]]);
  });

  it('drops the last batch when told to', async () => {
    const loader = new DataLoader(numbers(5), { batchSize: 2, dropLast: true, ...asList });
    expect(await collect(loader)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(loader.length).toBe(2);
  });

  it('shuffles anew in each pass, the same way in each run', async () => {
    const loader = new DataLoader(numbers(6), { batchSize: 6, shuffle: true, seed: 4, ...asList });
    expect(await collect(loader)).toEqual([[...randperm(6, 4)]]);
    expect(await collect(loader)).toEqual([[...randperm(6, 5)]]);
  });

  it('follows a sampler or a batchSampler', async () => {
    const sampler = new DistributedSampler(10, { replicas: 3, rank: 1 });
    expect(await collect(new DataLoader(numbers(10), { sampler, batchSize: 3, ...asList }))).toEqual([
      [1, 3, 8],
      [4],
    ]);
    const batchSampler = [Int32Array.of(2, 1), [0]];
    const loader = new DataLoader(numbers(3), { batchSampler, ...asList });
    expect(await collect(loader)).toEqual([[2, 1], [0]]);
    expect(loader.length).toBe(2);
  });

  it('refuses indices that the data set does not have, also if its get() takes them', async () => {
    for (const index of [3, -1, 0.5, 'a' as never])
      for (const [dataset, options] of [
        [numbers(3), asList],
        [[0, 1, 2], asList],
        [{ ...numbers(3), getBatch: (indices: Indices) => [...indices] }, {}],
      ] as const)
        await expect(
          collect(new DataLoader(dataset as Dataset<number>, { sampler: [0, index], ...options })),
        ).rejects.toMatchObject({
          code: 'ERR_DATA_INDEX',
          message: expect.stringContaining(
            `DataLoader: index ${inspect(index)} is outside the data set; expected an integer from 0 to 2.`,
          ),
        });
  });

  it('says of an object without samples that it is no data set, whatever the options', () => {
    for (const options of [{}, { shuffle: true }, { batchSampler: [[0]] }])
      expect(() => new DataLoader({ length: 3 } as never, options)).toThrow(
        'the first argument is no data set',
      );
  });

  it("uses the data set's own getBatch, unless there is a collate", () => {
    const dataset = new ArrayDataset({ x: { data: Float32Array.of(1, 2, 3), shape: [] } });
    const [batch] = new DataLoader(dataset, { batchSize: 2 });
    expect(batch).toEqual({ x: { data: Float32Array.of(1, 2), shape: [2] } });
    const [sums] = new DataLoader(dataset, {
      batchSize: 3,
      collate: (samples) => samples.map(({ x }) => x.data[0]),
    });
    expect(sums).toEqual([1, 2, 3]);
  });

  it('gives samples as they are, one by one, with batchSize null', async () => {
    const dataset = new ArrayDataset({ x: { data: Float32Array.of(1, 2, 3), shape: [] } });
    const single = new DataLoader(dataset, { batchSize: null, sampler: [2, 0] });
    expect((await collect(single)).map(({ x }) => [...x.data])).toEqual([[3], [1]]);
    expect(single.length).toBe(2);
    expect([...new DataLoader(['a', 'b'], { batchSize: null })]).toEqual(['a', 'b']);
    const shuffled = new DataLoader(numbers(6), { batchSize: null, shuffle: true, seed: 4 });
    expect([...shuffled]).toEqual([...randperm(6, 4)]);
    expect(shuffled.state().consumed).toBe(6);
    const doubled = new DataLoader(numbers(3), { batchSize: null, collate: (sample) => sample * 2 });
    expect([...doubled]).toEqual([0, 2, 4]);
    expect(await collect(new DataLoader(streamOf(3), { batchSize: null }))).toEqual([0, 1, 2]);
    const later = new DataLoader({ length: 2, get: async (i: number) => i }, { batchSize: null });
    expect(await collect(later)).toEqual([0, 1]);
    await expect(collect(new DataLoader([0], { batchSize: null, sampler: [1] }))).rejects.toMatchObject({
      code: 'ERR_DATA_INDEX',
    });
  });

  it('refuses options of batches with batchSize null', () => {
    for (const options of [{ dropLast: true }, { batchSampler: [[0]] }])
      expect(() => new DataLoader(numbers(3), { batchSize: null, ...options })).toThrow(
        expect.objectContaining({ code: 'ERR_DATA_ARGUMENT' }),
      );
  });

  it('takes an array of samples as it is', () => {
    const loader = new DataLoader(['a', 'b', 'c'], { batchSize: 2, sampler: new SequentialSampler(3) });
    expect([...loader]).toEqual([['a', 'b'], ['c']]);
  });

  it('knows the types of its batches', () => {
    const arrays = new ArrayDataset({ x: { data: new Float32Array(2), shape: [] } });
    expectTypeOf([...new DataLoader(arrays)]).toEqualTypeOf<{ x: NdArray<Float32Array<ArrayBuffer>> }[]>();
    expectTypeOf([...new DataLoader(numbers(1))]).toEqualTypeOf<NdArray<Float32Array>[]>();
    expectTypeOf([...new DataLoader(arrays, { collate: (samples) => samples.length })]).toEqualTypeOf<
      number[]
    >();
    expectTypeOf([...new DataLoader(numbers(1), { batchSize: null })]).toEqualTypeOf<number[]>();
    expectTypeOf([
      ...new DataLoader(numbers(1), { batchSize: null, collate: (sample) => `${sample}` }),
    ]).toEqualTypeOf<string[]>();
    expectTypeOf(new DataLoader(streamOf(1))).toEqualTypeOf<DataLoader<number, NdArray<Float32Array>>>();
  });

  it('returns to the event loop between few batches of a synchronous data set', async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    expect(await collect(new DataLoader(numbers(500), asList))).toHaveLength(500);
    clearImmediate(immediate);
    // It does so now and then, by time: not at all in most runs.
    expect(turns).toBeLessThan(50);
  });

  it('reads a synchronous data set in a plain loop, which may be left', () => {
    const loader = new DataLoader(numbers(5), { batchSize: 2, ...asList });
    expect([...loader]).toEqual([[0, 1], [2, 3], [4]]);
    for (const batch of loader) {
      expect(batch).toEqual([0, 1]);
      break;
    }
    expect(loader.state().consumed).toBe(2);
  });

  it('refuses a plain loop over asynchronous samples or collate', () => {
    const later = new DataLoader({ length: 2, get: (index: number) => Promise.resolve(index) });
    expect(() => [...later]).toThrow(expect.objectContaining({ code: 'ERR_DATA_ASYNC' }));
    const failing = new DataLoader({ length: 2, get: () => Promise.reject<number>(new Error('never seen')) });
    expect(() => [...failing]).toThrow('Use for await…of.');
    const slow = new DataLoader(numbers(2), { collate: async (samples: number[]) => samples });
    expect(() => [...slow]).toThrow(expect.objectContaining({ code: 'ERR_DATA_ASYNC' }));
  });
});

describe('DataLoader over an iterable data set', () => {
  it('makes batches of a synchronous or asynchronous stream', async () => {
    expect([...new DataLoader(new Set([1, 2, 3]), { batchSize: 2, ...asList })]).toEqual([[1, 2], [3]]);
    expect(await collect(new DataLoader(new Set([1, 2, 3]), { batchSize: 2, ...asList }))).toEqual([
      [1, 2],
      [3],
    ]);
    expect(await collect(new DataLoader(streamOf(5), { batchSize: 2, ...asList }))).toEqual([
      [0, 1],
      [2, 3],
      [4],
    ]);
    const dropping = new DataLoader(streamOf(5), { batchSize: 2, dropLast: true, ...asList });
    expect(await collect(dropping)).toHaveLength(2);
  });

  it('starts a new iterator in each pass', async () => {
    const dataset = { [Symbol.asyncIterator]: () => streamOf(3) };
    const loader = new DataLoader(dataset, { batchSize: 3, ...asList });
    expect(await collect(loader)).toEqual([[0, 1, 2]]);
    expect(await collect(loader)).toEqual([[0, 1, 2]]);
  });

  it('collates by default', async () => {
    const [batch] = await collect(new DataLoader(streamOf(2), { batchSize: 2 }));
    expect(batch).toEqual({ data: Float32Array.of(0, 1), shape: [2] });
  });

  it('has no length and cannot be read in a plain loop where it is asynchronous', () => {
    const loader = new DataLoader(streamOf(2));
    expect(() => loader.length).toThrow(expect.objectContaining({ code: 'ERR_DATA_LENGTH' }));
    expect(() => [...loader]).toThrow(expect.objectContaining({ code: 'ERR_DATA_ASYNC' }));
  });
});

describe('options that exclude each other', () => {
  const sampler = new SequentialSampler(4);
  const batchSampler = [[0]];
  it.each<[DataLoaderOptions, string]>([
    [
      { sampler, shuffle: true },
      'DataLoader: sampler was given together with shuffle; expected one or the other.',
    ],
    [{ sampler, seed: 1 }, 'sampler was given together with seed'],
    [{ batchSampler, batchSize: 2 }, 'batchSampler was given together with batchSize'],
    [{ batchSampler, sampler, dropLast: true }, 'batchSampler was given together with dropLast and sampler'],
    [{ batchSampler, shuffle: true }, 'batchSampler was given together with shuffle'],
    [{ batchSize: 0 }, 'batchSize: expected an integer of at least 1, got 0'],
    [{ prefetch: -1 }, 'prefetch: expected an integer of at least 0, got -1'],
    [{ shuffle: true, seed: -1 }, 'seed: expected an integer of at least 0, got -1'],
  ])('refuses %o', (options, message) => {
    expect(() => new DataLoader(numbers(4), options)).toThrow(message);
  });

  it('allows options that are switched off', () => {
    expect(new DataLoader(numbers(4), { sampler, shuffle: false }).length).toBe(4);
    expect(new DataLoader(numbers(4), { batchSampler, dropLast: false }).length).toBe(1);
  });

  it.each<[DataLoaderOptions, string]>([
    [{ shuffle: true }, 'an iterable data set was given together with shuffle'],
    [{ sampler }, 'an iterable data set was given together with sampler'],
    [{ batchSampler }, 'an iterable data set was given together with batchSampler'],
    [{ batchSize: 0.5 }, 'DataLoader: batchSize: expected an integer of at least 1, got 0.5'],
  ])('refuses %o for a stream', (options, message) => {
    expect(() => new DataLoader(streamOf(1), options)).toThrow(message);
  });

  it('refuses an argument that is no data set, and a shuffle of an empty one', () => {
    expect(() => new DataLoader({} as Iterable<number>)).toThrow('the first argument is no data set');
    expect(() => new DataLoader(numbers(0), { shuffle: true })).toThrow('Is the data set empty?');
    expect([...new DataLoader(numbers(0))]).toEqual([]);
  });

  it('has no length where the batchSampler has none', () => {
    const loader = new DataLoader(numbers(4), { batchSampler: new Set([[0]]) });
    expect(() => loader.length).toThrow('the batchSampler has no length');
  });
});
