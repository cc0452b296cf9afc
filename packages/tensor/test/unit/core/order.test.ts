// Tests sort, topk, cumsum, tril and triu.
import { describe, expect, test } from 'vitest';
import { arange, memory, ones, rand, tensor } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

const a = tensor([
  [3, 1, 2],
  [1, NaN, -1],
]);

describe('sort and topk', () => {
  test.each([false, true])('leave no tensor behind (with a gradient: %s)', (requiresGrad) => {
    const x = rand([3, 4]);
    x.requiresGrad = requiresGrad;
    const before = memory().tensors;
    for (const dim of [0, 1]) {
      const { values, indices } = x.sort(dim);
      const { values: most, indices: where } = x.topk(2, dim);
      for (const tensor of [values, indices, most, where]) tensor.dispose();
    }
    expect(memory().tensors).toBe(before);
  });

  test('order any dimension, with where each value stood', () => {
    const { values, indices } = a.sort();
    expect(values.toArray()).toEqual([
      [1, 2, 3],
      [-1, 1, NaN],
    ]);
    expect(indices.dtype).toBe('int64');
    expect(indices.toArray()).toEqual([
      [1, 2, 0],
      [2, 0, 1],
    ]);
    expect(a.sort(0, { descending: true }).indices.toArray()).toEqual([
      [0, 1, 0],
      [1, 0, 1],
    ]);
    expect(a.topk(2).values.toArray()).toEqual([
      [3, 2],
      [NaN, 1],
    ]);
    expect(a.topk(1, 0, { largest: false }).values.toArray()).toEqual([[1, 1, -1]]);
    expect(a.topk(0).values.shape).toEqual([2, 0]);
    expect(codeOf(() => a.topk(4))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('send the gradient where the values came from', () => {
    gradCheck64((x) => x!.sort(0, { descending: true }).values.square(), [leaf64([4, 3])]);
    gradCheck64((x) => x!.t().topk(2).values.exp(), [leaf64([4, 3])]);
  });
});

test('a tensor without dimensions is a row of one element, as in PyTorch', () => {
  const one = leaf64([]);
  const value = one.item();
  for (const dim of [0, -1]) {
    expect([one.sort(dim).values.shape, one.sort(dim).indices.item()]).toEqual([[], 0]);
    expect([one.topk(1, dim).values.shape, one.topk(1, dim).values.item()]).toEqual([[], value]);
    expect([one.cumsum(dim).shape, one.cumsum(dim).item()]).toEqual([[], value]);
    expect([one.softmax(dim).shape, one.softmax(dim).item()]).toEqual([[], 1]);
    expect([one.argmax(dim).shape, one.argmax(dim).item()]).toEqual([[], 0]);
  }
  gradCheck64((x) => x!.cumsum(0).mul(x!.sort().values), [one]);
  for (const op of [() => one.sort(1), () => one.cumsum(1), () => one.softmax(-2), () => one.argmax(1)])
    expect(codeOf(op)).toBe('ERR_TENSOR_SHAPE');
});

describe('cumsum', () => {
  test('adds up along a dimension, integers in int64', () => {
    expect(arange(6).reshape([2, 3]).cumsum(1).toArray()).toEqual([
      [0, 1, 3],
      [3, 7, 12],
    ]);
    const counts = ones([3], { dtype: 'bool' }).cumsum(0);
    expect([counts.dtype, counts.toArray()]).toEqual(['int64', [1, 2, 3]]);
  });

  test('passes the gradient on', () => {
    gradCheck64((x) => x!.cumsum(0).square(), [leaf64([3, 2])]);
    gradCheck64((x) => x!.t().cumsum(0).square(), [leaf64([3, 2])]);
  });
});

describe('tril and triu', () => {
  test('leave one side of a diagonal, in every matrix of a batch', () => {
    const square = ones([2, 3, 3]);
    expect(square.tril().at(1).toArray()).toEqual([
      [1, 0, 0],
      [1, 1, 0],
      [1, 1, 1],
    ]);
    expect(square.triu(1).at(0).toArray()).toEqual([
      [0, 1, 1],
      [0, 0, 1],
      [0, 0, 0],
    ]);
    expect(codeOf(() => arange(3).tril())).toBe('ERR_TENSOR_SHAPE');
  });

  test('pass the gradient on', () => {
    gradCheck64((x) => x!.tril(-1).square().add(x!.triu(1)), [leaf64([2, 3, 3])]);
  });
});
