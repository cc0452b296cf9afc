import { describe, expect, expectTypeOf, it } from 'vitest';
import { ArrayDataset, DataLoader, mapDataset, type NdArray, normalize, Subset } from '../../../src/index.ts';

const points = () =>
  new ArrayDataset({
    point: { data: Float32Array.of(0, 1, 10, 11, 20, 21, 30, 31), shape: [2] },
    label: { data: Uint8Array.of(5, 6, 7, 8), shape: [] },
  });

describe('ArrayDataset', () => {
  it('gives a sample as views of its memory', () => {
    const dataset = points();
    expect(dataset.length).toBe(4);
    const { point, label } = dataset.get(2);
    expect(point).toEqual({ data: Float32Array.of(20, 21), shape: [2] });
    expect(label).toEqual({ data: Uint8Array.of(7), shape: [] });
    point.data[0] = -1;
    expect(dataset.get(2).point.data[0]).toBe(-1);
  });

  it('gathers a batch into fresh memory of the same types', () => {
    const dataset = points();
    const batch = dataset.getBatch([3, 0, 3]);
    expect(batch.point).toEqual({ data: Float32Array.of(30, 31, 0, 1, 30, 31), shape: [3, 2] });
    expect(batch.label).toEqual({ data: Uint8Array.of(8, 5, 8), shape: [3] });
    batch.point.data.fill(0);
    expect(dataset.get(3).point.data).toEqual(Float32Array.of(30, 31));
    expectTypeOf(batch.label).toEqualTypeOf<NdArray<Uint8Array<ArrayBuffer>>>();
  });

  it('gathers samples of many elements and of every type', () => {
    const data = Int16Array.from({ length: 5 * 40 }, (_, i) => i);
    const wide = new ArrayDataset({
      x: { data, shape: [2, 20] },
      big: { data: BigInt64Array.of(1n, 2n, 3n, 4n, 5n), shape: [] },
    });
    const { x, big } = wide.getBatch(Int32Array.of(4, 1));
    expect(x.shape).toEqual([2, 2, 20]);
    expect([...x.data]).toEqual([...data.subarray(160), ...data.subarray(40, 80)]);
    expect(big.data).toEqual(BigInt64Array.of(5n, 2n));
  });

  it('gathers from a Node Buffer into a Uint8Array', () => {
    const { x } = new ArrayDataset({ x: { data: Buffer.from([1, 2, 3]), shape: [] } }).getBatch([2, 1]);
    expect(x.data).toEqual(Uint8Array.of(3, 2));
  });

  it('refuses indices outside', () => {
    for (const index of [4, -1, 0.5, Number.NaN]) {
      expect(() => points().get(index)).toThrow(expect.objectContaining({ code: 'ERR_DATA_INDEX' }));
      expect(() => points().getBatch([0, index])).toThrow('expected an integer from 0 to 3');
    }
  });

  it('refuses fields that do not fit', () => {
    expect(() => new ArrayDataset({})).toThrow('expected at least one field, got none');
    const data = new Float32Array(6);
    expect(() => new ArrayDataset({ x: { data, shape: [4] } })).toThrow(
      'field "x" has 6 elements; expected a multiple of the product of its shape per sample, got [4]',
    );
    expect(() => new ArrayDataset({ x: { data, shape: [0] } })).toThrow('got [0]');
    expect(() => new ArrayDataset({ x: { data, shape: [2] }, y: { data, shape: [3] } })).toThrow(
      'field "y" has 6 elements with [3] per sample; expected 3 samples as in the first field',
    );
  });
});

describe('Subset', () => {
  it('renumbers samples and batches', async () => {
    const subset = new Subset(points(), [3, 1]);
    expect(subset.length).toBe(2);
    expect((await subset.getBatch!([1, 0])).label.data).toEqual(Uint8Array.of(6, 8));
    const [batch] = new DataLoader(subset, { batchSize: 2 });
    expect(batch!.point.data).toEqual(Float32Array.of(30, 31, 10, 11));
  });

  it('has no getBatch where the data set has none', () => {
    const subset = new Subset({ length: 3, get: (index: number) => index * 10 }, [2]);
    expect(subset.getBatch).toBeUndefined();
    expect(subset.get(0)).toBe(20);
    expect(() => subset.get(1)).toThrow(
      'Subset: index 1 is outside the data set; expected an integer from 0 to 0.',
    );
  });

  it.each([9, -1, 0.5])('refuses index %d, which the data set does not have', (index) => {
    const subset = new Subset({ length: 3, get: (at: number) => at }, [0, index]);
    expect(subset.get(0)).toBe(0);
    expect(() => subset.get(1)).toThrow(
      `Subset: index ${index} is outside the data set; expected an integer from 0 to 2.`,
    );
    expect(() => new Subset(points(), [0, index]).getBatch!([1])).toThrow(
      `Subset: index ${index} is outside`,
    );
  });

  it('takes an array, as a loader does, but no stream', () => {
    const [batch] = new DataLoader(new Subset(['a', 'b', 'c'], [2, 0]), { batchSize: 2 });
    expect(batch).toEqual(['c', 'a']);
    expect(() => new Subset(new Set([1]) as never, [0])).toThrow(
      'Subset: dataset: expected a data set with length and get(), or an array, got ',
    );
  });
});

describe('mapDataset', () => {
  it('transforms each sample, and stays synchronous where it can', async () => {
    const doubled = mapDataset(
      { length: 2, get: (index: number) => index + 1 },
      (sample, index) => sample * 10 + index,
    );
    expect(doubled.get(1)).toBe(21);
    const later = mapDataset(
      { length: 2, get: (index: number) => Promise.resolve(index) },
      (sample) => `${sample}`,
    );
    expect(later.get(1)).toBeInstanceOf(Promise);
    expect(await later.get(1)).toBe('1');
  });
});

describe('normalize', () => {
  it('scales bytes and then shifts by mean and std', () => {
    expect(normalize(Uint8Array.of(0, 51, 255))).toEqual(Float32Array.of(0, 0.2, 1));
    const [low, high] = normalize(Uint8Array.of(0, 255), { mean: 0.25, std: 0.5 });
    expect(low).toBeCloseTo(-0.5, 6);
    expect(high).toBeCloseTo(1.5, 6);
    expect(normalize(Int32Array.of(4), { scale: 0.5 })).toEqual(Float32Array.of(2));
  });

  it('refuses a std of 0', () => {
    expect(() => normalize(Uint8Array.of(1), { std: 0 })).toThrow(
      'normalize: std: expected a number above 0, got 0',
    );
  });
});
