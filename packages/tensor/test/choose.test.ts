import { describe, expect, test } from 'vitest';
import { clamp, maskedFill, tensor, where } from '../src/index.ts';
import { codeOf } from './code-of.ts';
import { gradCheck64, leaf64 } from './leaf64.ts';

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
});
