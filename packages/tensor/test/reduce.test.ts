import { describe, expect, test } from 'vitest';
import {
  arange,
  argmax,
  generator,
  gradCheck,
  max,
  mean,
  randn,
  sum,
  type Tensor,
  tensor,
  zeros,
} from '../src/index.ts';
import { codeOf } from './code-of.ts';

const cube = (): Tensor => arange(24).reshape([2, 3, 4]);

describe('sum, mean and max', () => {
  test('over all dimensions', () => {
    expect(sum(cube()).item()).toBe(276);
    expect(mean(cube()).item()).toBe(11.5);
    expect(max(cube()).item()).toBe(23);
    expect(sum(cube(), undefined, true).shape).toEqual([1, 1, 1]);
  });

  test('over one or several dimensions, kept or not', () => {
    expect(sum(cube(), 2).toArray()).toEqual([
      [6, 22, 38],
      [54, 70, 86],
    ]);
    expect(sum(cube(), [0, 2]).toArray()).toEqual([60, 92, 124]);
    expect(sum(cube(), [0, 1]).toArray()).toEqual([60, 66, 72, 78]);
    expect(mean(cube(), -1, true).toArray()).toEqual([
      [[1.5], [5.5], [9.5]],
      [[13.5], [17.5], [21.5]],
    ]);
    expect(max(cube(), [1]).toArray()).toEqual([
      [8, 9, 10, 11],
      [20, 21, 22, 23],
    ]);
    expect(sum(cube(), []).toArray()).toEqual(cube().toArray());
    expect(sum(tensor(5)).item()).toBe(5);
  });

  test('keep integers, except that a mean of them is refused', () => {
    const a = tensor([
      [1n, 2n],
      [3n, 40n],
    ]);
    expect(sum(a, 0)).toMatchObject({ dtype: 'int64' });
    expect(sum(a, 0).toArray()).toEqual([4, 42]);
    expect(max(a).item()).toBe(40);
    expect(codeOf(() => mean(a))).toBe('ERR_TENSOR_DTYPE');
  });

  test('of nothing: sum is 0, mean is NaN, max is refused', () => {
    const nothing = zeros([0, 3]);
    expect(sum(nothing).item()).toBe(0);
    expect(sum(nothing, 0).toArray()).toEqual([0, 0, 0]);
    expect(mean(nothing).item()).toBeNaN();
    expect(codeOf(() => max(nothing))).toBe('ERR_TENSOR_SHAPE');
    expect(max(nothing, 1).shape).toEqual([0]);
  });

  test('refuse a dimension that is not there', () => {
    expect(() => sum(cube(), 3)).toThrow('sum: expected a dimension from -3 to 2, got 3.');
  });

  test.each([[undefined], [0], [1], [-1], [[0, 2]], [[0, 1, 2]]])('gradients over dimensions %j', (dims) => {
    for (const op of [sum, mean, max]) {
      for (const keepDim of [false, true]) {
        const x = randn([2, 3, 2], { generator: generator(5), requiresGrad: true });
        gradCheck((a) => op(a!, dims, keepDim).square(), [x]);
      }
    }
  });

  test('equal maxima share the gradient', () => {
    const x = tensor(
      [
        [3, 1, 3],
        [2, 0, 1],
      ],
      { requiresGrad: true },
    );
    max(x, 1).sum().backward();
    expect(x.grad!.toArray()).toEqual([
      [0.5, 0, 0.5],
      [1, 0, 0],
    ]);
  });
});

describe('argmax', () => {
  test('gives the index along a dimension, or in the flattened tensor', () => {
    const a = tensor([
      [1, 9, 3],
      [7, 2, 7],
    ]);
    expect(argmax(a)).toMatchObject({ dtype: 'int64', shape: [] });
    expect(argmax(a).item()).toBe(1);
    expect(argmax(a, 1).toArray()).toEqual([1, 0]);
    expect(argmax(a, 0).toArray()).toEqual([1, 0, 1]);
    expect(argmax(a, -1, true).shape).toEqual([2, 1]);
    expect(codeOf(() => argmax(zeros([2, 0]), 1))).toBe('ERR_TENSOR_SHAPE');
  });

  test('gives an accuracy with labels of another integer type', () => {
    const labels = tensor([1n, 2n]);
    expect(
      argmax(
        tensor([
          [1, 9, 3],
          [7, 2, 7],
        ]),
        1,
      )
        .eq(labels)
        .sum()
        .item(),
    ).toBe(1);
  });
});
