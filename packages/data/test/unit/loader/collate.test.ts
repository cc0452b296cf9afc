import { describe, expect, expectTypeOf, it } from 'vitest';
import { defaultCollate, type NdArray } from '../../../src/index.ts';

describe('defaultCollate', () => {
  it('makes arrays of plain values, with one type for all numbers', () => {
    expect(defaultCollate([1, 2.5])).toEqual({ data: Float32Array.of(1, 2.5), shape: [2] });
    expect(defaultCollate([1, 2])).toEqual({ data: Float32Array.of(1, 2), shape: [2] });
    expect(defaultCollate([1n, -2n])).toEqual({ data: BigInt64Array.of(1n, -2n), shape: [2] });
    expect(defaultCollate([true, false])).toEqual({ data: Uint8Array.of(1, 0), shape: [2] });
    expect(defaultCollate(['a', 'b'])).toEqual(['a', 'b']);
  });

  it('stacks typed arrays and shaped arrays', () => {
    expect(defaultCollate([Uint8Array.of(1, 2), Uint8Array.of(3, 4)])).toEqual({
      data: Uint8Array.of(1, 2, 3, 4),
      shape: [2, 2],
    });
    const image = (value: number) => ({ data: new Float64Array(6).fill(value), shape: [2, 3] });
    expect(defaultCollate([image(1), image(2)])).toEqual({
      data: Float64Array.of(1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2),
      shape: [2, 2, 3],
    });
    expect(defaultCollate([{ data: Int32Array.of(7), shape: [] }]).shape).toEqual([1]);
  });

  it('refuses an array with further members, which would be lost', () => {
    const sample = { data: Float32Array.of(1), shape: [1], label: 3 };
    expect(() => defaultCollate([sample, sample])).toThrow(
      expect.objectContaining({
        code: 'ERR_DATA_COLLATE',
        message:
          "collate: sample has data and shape, so it is an array, but also a member 'label', which an array cannot have. " +
          'Put the array into a member of its own: { x: { data, shape }, label }.',
      }),
    );
    const plain = { data: Float32Array.of(1), shape: [1] };
    expect(() => defaultCollate([{ x: plain }, { x: sample }])).toThrow('sample.x has data and shape');
  });

  it('goes into objects and arrays, whose entries become batches', () => {
    const batch = defaultCollate([
      { pair: [1, 'x'] as [number, string], more: { flag: true } },
      { pair: [2, 'y'] as [number, string], more: { flag: false } },
    ]);
    expect(batch).toEqual({
      pair: [{ data: Float32Array.of(1, 2), shape: [2] }, ['x', 'y']],
      more: { flag: { data: Uint8Array.of(1, 0), shape: [2] } },
    });
    expectTypeOf(batch).toEqualTypeOf<{
      pair: [NdArray<Float32Array>, string[]];
      more: { flag: NdArray<Uint8Array> };
    }>();
  });

  it('copies: the batch shares no memory with the samples', () => {
    const sample = Float32Array.of(1);
    defaultCollate([sample]).data[0] = 5;
    expect(sample[0]).toBe(1);
  });

  it.each([
    [
      [Float32Array.of(1), Float32Array.of(1, 2)],
      'sample differs between samples 0 and 1 of the batch; expected Float32Array [1], got Float32Array [2]',
    ],
    [[Float32Array.of(1), Uint8Array.of(1)], 'expected Float32Array [1], got Uint8Array [1]'],
    [
      [{ x: [1, 2] }, { x: [1] }],
      'sample.x differs between samples 0 and 1 of the batch; expected an array of 2, got an array of 1',
    ],
    [
      [{ x: 1 }, { x: 1 }, { y: 1 }],
      'sample differs between samples 0 and 2 of the batch; expected an object with x, got an object with y',
    ],
    [[1, 'a'], 'expected a number, got a string'],
    [[{ a: [1, null] }], 'sample.a[1] cannot become part of a batch'],
    [
      [{ a: null }, { a: 1 }],
      'sample.a differs between samples 0 and 1 of the batch; expected null, got a number',
    ],
    [
      [{ a: { b: 1 } }, { a: null }],
      'sample.a differs between samples 0 and 1 of the batch; expected an object with b, got null',
    ],
    [[new (class Tensor {})()], 'got a Tensor. Return { data: await x.data(), shape: x.shape } instead'],
    [[1n, 2n ** 63n], 'sample cannot become part of a batch'],
    [[{ a: -(2n ** 63n) - 1n }], 'got a bigint beyond the range of int64'],
    [[new Date(0)], 'got a Date'],
    [[undefined], 'got undefined'],
    [[{ data: Uint8Array.of(1, 2, 3), shape: [2] }], '3 elements with the shape [2]'],
    [
      [
        { data: new Uint8Array(4), shape: [2, 2] },
        { data: new Uint8Array(4), shape: [4] },
      ],
      'expected Uint8Array [2, 2], got Uint8Array [4]',
    ],
    [[], 'expected at least one sample, got none'],
  ])('refuses %o', (samples: unknown[], message) => {
    expect(() => defaultCollate(samples)).toThrow(message);
    expect(() => defaultCollate(samples)).toThrow(expect.objectContaining({ code: 'ERR_DATA_COLLATE' }));
  });
});
