import { describe, expect, test } from 'vitest';
import { arange, embedding, oneHot, tensor, zeros } from '../src/index.ts';
import { codeOf } from './code-of.ts';
import { gradCheck64, leaf64 } from './leaf64.ts';

const ints = (values: number[], shape = [values.length]) => tensor(values, { dtype: 'int32', shape });

describe('indexSelect and embedding', () => {
  test('take slices by index, in both integer dtypes, also from strided tensors', () => {
    const a = arange(12).reshape([3, 4]);
    expect(a.indexSelect(0, ints([2, 0, 2])).toArray()).toEqual([
      [8, 9, 10, 11],
      [0, 1, 2, 3],
      [8, 9, 10, 11],
    ]);
    expect(
      a
        .t()
        .indexSelect(-1, tensor([1n]))
        .toArray(),
    ).toEqual([[4], [5], [6], [7]]);
    expect(embedding(ints([2, 1, 0, 0], [2, 2]).t(), a)).toMatchObject({ shape: [2, 2, 4] });
    expect(
      embedding(ints([2, 1, 0, 0], [2, 2]).t(), a)
        .at(0, 1, 0)
        .item(),
    ).toBe(0);
    expect(() => a.indexSelect(0, ints([0, 3]))).toThrow(
      'indexSelect: index 3 at position 1 is out of range; expected 0 to 2.',
    );
    expect(codeOf(() => a.indexSelect(0, ints([-1])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => a.indexSelect(0, tensor([1])))).toBe('ERR_TENSOR_DTYPE');
  });

  test('add up the gradient of rows that were taken twice', () => {
    gradCheck64((a) => a!.indexSelect(1, ints([0, 2, 0])).square(), [leaf64([2, 3])]);
    gradCheck64((a) => embedding(ints([1, 1, 0, 3], [2, 2]), a!.t()).square(), [leaf64([3, 4])]);
    gradCheck64(
      (a) =>
        a!
          .mul(2)
          .sum()
          .add(
            embedding(ints([1, 1]), a!)
              .exp()
              .sum(),
          ),
      [leaf64([3, 2])],
    );
  });
});

describe('gather and scatterAdd', () => {
  const a = arange(6).reshape([2, 3]);
  const index = ints([2, 0, 1, 1], [2, 2]);

  test('follow PyTorch, also where the index is smaller than the tensor', () => {
    expect(a.gather(1, index).toArray()).toEqual([
      [2, 0],
      [4, 4],
    ]);
    expect(a.gather(0, ints([1, 0], [1, 2])).toArray()).toEqual([[3, 1]]);
    expect(
      zeros([2, 3])
        .scatterAdd(1, index, tensor([1, 2, 3, 4], { shape: [2, 2] }))
        .toArray(),
    ).toEqual([
      [2, 0, 1],
      [0, 7, 0],
    ]);
    expect(codeOf(() => a.gather(1, ints([0])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => a.gather(1, ints([3, 0], [1, 2])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => a.scatterAdd(1, index, zeros([2, 2], { dtype: 'float64' })))).toBe(
      'ERR_TENSOR_DTYPE',
    );
  });

  test('are each other’s gradient', () => {
    gradCheck64((x) => x!.gather(1, index).square(), [leaf64([2, 3])]);
    gradCheck64((x) => x!.gather(0, ints([1, 0], [1, 2])).square(), [leaf64([2, 3])]);
    gradCheck64((x, y) => x!.scatterAdd(1, index, y!.t()).square(), [leaf64([2, 3]), leaf64([2, 2], 2)]);
  });
});

test('oneHot puts a 1 in the place of each label', () => {
  const hot = oneHot(ints([2, 0], [2, 1]), 3);
  expect(hot.dtype).toBe('int64');
  expect(hot.toArray()).toEqual([[[0, 0, 1]], [[1, 0, 0]]]);
  expect(codeOf(() => oneHot(ints([3]), 3))).toBe('ERR_TENSOR_ARGUMENT');
});
