// Packs a state for a transfer: a header, and memory that is read piece by piece.
import { tensor } from '@ringwise/tensor';
import { expect, it } from 'vitest';
import { packState, unpackState } from '../../../src/index.ts';

it("gives the state back, with this rank's own values and the bytes of its arrays", async () => {
  const weights = tensor([
    [1.5, 2],
    [3, 4],
  ]);
  const state = {
    generator: { seed: 7, offset: 3 },
    cursor: { epoch: 1, step: 2, position: 3 },
    big: 5n,
    list: [new Float64Array([0.1]), new Uint8Array([1, 2, 3]), new Float32Array(0)],
    tensors: { weights, number: tensor(2.5, { dtype: 'float64' }) },
  };
  const packed = packState(state);
  expect(packed.arrays.map(({ offset, bytes }) => [offset, bytes])).toEqual([
    [0, 8],
    [64, 3],
    [128, 0],
    [128, 16],
    [192, 8],
  ]);
  expect(packed.bytes).toBe(256);
  const { arrays, value } = unpackState(packed.header);
  for (const [i, { fill, offset, bytes }] of arrays.entries()) {
    expect([offset, bytes]).toEqual([packed.arrays[i]!.offset, packed.arrays[i]!.bytes]);
    fill((await packed.arrays[i]!.read()).slice());
  }
  expect(value()).toEqual({
    ...state,
    tensors: {
      weights: { data: Float32Array.of(1.5, 2, 3, 4), dtype: 'float32', shape: [2, 2] },
      number: { data: Float64Array.of(2.5), dtype: 'float64', shape: [] },
    },
  });
});

it('keeps numbers that JSON does not have', () => {
  const state = {
    best: Number.POSITIVE_INFINITY,
    list: [1, Number.NaN, { low: Number.NEGATIVE_INFINITY }],
    zero: -0,
  };
  expect(unpackState(packState(state).header).value()).toEqual(state);
});

it('refuses what cannot be sent', () => {
  expect(() => packState({ a: { b: () => 1 } })).toThrow('state.a.b');
  expect(() => packState({ a: () => 1 })).toThrow(expect.objectContaining({ code: 'ERR_DDP_INVALID' }));
  expect(() => packState({ a: { $number: '1' } })).toThrow('a member $number, which means something else');
});
