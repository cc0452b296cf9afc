// Tests where, maskedFill and clamp.
import { describe, expect, test } from 'vitest';
import { clamp, maskedFill, tensor, where } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, gradientsOf, leaf64 } from '../../support/leaf64.ts';

const mask = tensor([[true], [false]]);

describe('where and maskedFill', () => {
  test('choose by a mask, and broadcast all three', () => {
    const rows = tensor([1, 2, 3]);
    expect(where(mask, rows, 0).toArray()).toEqual([
      [1, 2, 3],
      [0, 0, 0],
    ]);
    expect(where(mask, 1, tensor([2n])).dtype).toBe('int64');
    expect(maskedFill(rows, mask, -1).toArray()).toEqual([
      [-1, -1, -1],
      [1, 2, 3],
    ]);
    expect(maskedFill(rows, rows.gt(1), -Infinity).toArray()).toEqual([1, -Infinity, -Infinity]);
    expect(codeOf(() => where(tensor([1, 0, 1]), rows, 0))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => where(mask, rows, tensor([1, 2])))).toBe('ERR_TENSOR_SHAPE');
  });

  test('send the gradient where the values came from', () => {
    gradCheck64((a, b) => where(mask, a!, b!).square(), [leaf64([2, 3]), leaf64([3], 2)]);
    gradCheck64((a) => maskedFill(a!, mask, 5).square(), [leaf64([2, 3])]);
    const x = leaf64([2]);
    where(tensor([true, false]), x.log(), 0)
      .sum()
      .backward();
    expect(x.grad!.at(1).item()).toBeCloseTo(0);
  });
});

describe('maskedFill', () => {
  const chosen = tensor([true, false]);

  test('keeps the dtype, and cuts a fraction for integers', () => {
    const filled = maskedFill(tensor([1, 2], { dtype: 'int32' }), chosen, 1.5);
    expect(filled).toMatchObject({ dtype: 'int32' });
    expect(filled.toArray()).toEqual([1, 2]);
    expect(maskedFill(tensor([false, true]), chosen, 0.5).toArray()).toEqual([1, 1]);
    expect(maskedFill(tensor([1, 2], { dtype: 'float16' }), chosen, -Infinity).toArray()).toEqual([
      -Infinity,
      2,
    ]);
  });

  test('refuses a value that the dtype does not hold', () => {
    for (const value of [NaN, Infinity, 3e9])
      expect(() => maskedFill(tensor([1, 2], { dtype: 'int32' }), chosen, value)).toThrow(
        `maskedFill: ${value} does not fit into int32`,
      );
    expect(codeOf(() => maskedFill(tensor([1, 2], { dtype: 'float16' }), chosen, -1e9))).toBe(
      'ERR_TENSOR_ARGUMENT',
    );
    expect(codeOf(() => where(chosen, tensor([1, 2], { dtype: 'uint8' }), 300))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('takes a tensor without dimensions as value, which gets its gradient', () => {
    expect(gradientsOf((a, v) => maskedFill(a, chosen, v).mul(3), [1, 2], 5)).toEqual([[0, 3], 3]);
    expect(maskedFill(tensor([1n, 2n]), chosen, tensor(2.5)).toArray()).toEqual([2, 2]);
    expect(() => maskedFill(tensor([1, 2]), chosen, tensor([1, 2]))).toThrow(
      'maskedFill: expected a number or a tensor without dimensions as value, got shape [2]. Use where.',
    );
  });
});

describe('clamp', () => {
  test('holds elements between two numbers, either of which may be left out', () => {
    const a = tensor([-3, 0.5, NaN, 9]);
    expect(clamp(a, -1, 1).toArray()).toEqual([-1, 0.5, NaN, 1]);
    expect(clamp(a, 1).toArray()).toEqual([1, 1, NaN, 9]);
    expect(clamp(a, null, 0).toArray()).toEqual([-3, 0, NaN, 0]);
    const whole = tensor([-3, 9], { dtype: 'int32' });
    expect(whole.clamp(0)).toMatchObject({ dtype: 'int32' });
    expect(whole.clamp(0).toArray()).toEqual([0, 9]);
    expect(whole.clamp(null, 2.5).toArray()).toEqual([-3, 2.5]);
  });

  test('has gradient 1 inside and 0 outside', () => {
    gradCheck64((a) => a!.t().clamp(-0.5, 0.7).square(), [leaf64([3, 4])]);
    const x = tensor([-1, 0, 2], { requiresGrad: true });
    x.clamp(0, 1).sum().backward();
    expect(x.grad!.toArray()).toEqual([0, 1, 0]);
  });

  const values = [-2, -1, 0, 0.5, 1, 2, NaN, Infinity, -Infinity];
  const low = [-1, -1, 0, 1, NaN, 3, 0, 0, 0];
  const high = [1, -1, 0, 2, 0, 1, 1, NaN, 1];

  test('takes tensors as bounds, which get the gradient of what lies beyond them', () => {
    const x = tensor(values);
    expect(clamp(x, tensor(low), tensor(high)).toArray()).toEqual([-1, -1, 0, 1, NaN, 1, NaN, NaN, 0]);
    expect(gradientsOf((a, b, c) => clamp(a, b, c), values, low, high)).toEqual([
      [0, 1, 1, 0, 0, 0, 0, 0, 0],
      [1, 0, 0, 1, 0, 0, 0, 0, 1],
      [0, 0, 0, 0, 1, 1, 0, 0, 0],
    ]);
    expect(gradientsOf((a, b) => clamp(a, b), values, low)).toEqual([
      [0, 1, 1, 0, 0, 0, 0, 1, 0],
      [1, 0, 0, 1, 0, 1, 0, 0, 1],
    ]);
    expect(gradientsOf((a, b) => clamp(a, null, b), values, low)).toEqual([
      [1, 1, 1, 1, 0, 1, 0, 0, 1],
      [0, 0, 0, 0, 0, 0, 0, 1, 0],
    ]);
    expect(gradientsOf((a) => clamp(a, -1, 1), values)).toEqual([[0, 1, 1, 1, 1, 0, 0, 0, 0]]);
  });

  test('broadcasts bounds, those without dimensions too', () => {
    expect(gradientsOf((a, b, c) => clamp(a, b, c), [-2, 0, 0.5, 1, 3], -1, 1)).toEqual([
      [0, 1, 1, 1, 0],
      1,
      1,
    ]);
    gradCheck64((a, b) => clamp(a!, b, 0.4).square(), [leaf64([2, 3]), leaf64([2, 1], 5)]);
    expect(clamp(tensor([1, 4]), tensor(3, { dtype: 'float64' })).dtype).toBe('float32');
    expect(clamp(tensor([1n, 4n]), tensor([1.5, 2])).dtype).toBe('float32');
    expect(codeOf(() => clamp(tensor([1, 2]), tensor([1, 2, 3])))).toBe('ERR_TENSOR_SHAPE');
  });

  test('holds integers that are no safe numbers, and refuses bounds that are no integers of the dtype', () => {
    const large = tensor([2n ** 60n, -5n]);
    expect(clamp(large, 0).dataSync()).toEqual(BigInt64Array.of(2n ** 60n, 0n));
    expect(() => clamp(tensor([1], { dtype: 'uint8' }), 300)).toThrow('clamp: 300 does not fit into uint8');
    expect(() => clamp(tensor([1]))).toThrow(
      'clamp: expected a lower bound, an upper bound or both, got none',
    );
    for (const wrong of ['1', true, [1], {}] as never[])
      expect(() => clamp(tensor([1]), wrong)).toThrow('clamp: expected a tensor or a number');
  });
});
