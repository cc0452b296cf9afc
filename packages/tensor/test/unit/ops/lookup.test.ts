// Tests indexSelect, embedding, gather, scatterAdd and oneHot.
import { describe, expect, test } from 'vitest';
import { arange, embedding, oneHot, tensor, zeros } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';
import { expectCase, leafOf } from '../../support/torch-case.ts';

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
    for (const [at, from] of [[[1, 4], [4, 4]], [[1, 2], [1, 1]], [[4], [2, 3]]]) // biome-ignore format: shapes
      expect(
        codeOf(() =>
          zeros([3, 3]).scatterAdd(0, ints(Array(at!.reduce((x, y) => x * y)).fill(0), at), zeros(from!)),
        ),
      ).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => a.gather(1, ints([3, 0], [1, 2])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => a.scatterAdd(1, index, zeros([2, 2], { dtype: 'float64' })))).toBe(
      'ERR_TENSOR_DTYPE',
    );
  });

  test('scatterAdd takes an index that is smaller than source and tensor', () => {
    // biome-ignore format: numbers of PyTorch (the gradient of the source: those of the part that the index reaches)
    expectCase(
      [leafOf(zeros([3, 3])), leafOf(arange(9).reshape([3, 3]).add(1))],
      (a, source) => a.scatterAdd(0, ints([0, 1, 0, 0], [2, 2]), source),
      [[5, 5, 0], [0, 2, 0], [0, 0, 0]],
      [[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 5, 0], [1, 2, 0], [0, 0, 0]],
    );
    const a = arange(6).reshape([2, 3]);
    expect(a.scatterAdd(1, zeros([0, 7], { dtype: 'int64' }), zeros([5, 2])).toArray()).toEqual(a.toArray());
    gradCheck64(
      (x, y) =>
        x!
          .t()
          .scatterAdd(1, ints([1, 0, 1], [1, 3]), y!.t())
          .square(),
      [leaf64([2, 3]), leaf64([4, 2], 2)],
    );
  });

  test('tensors without dimensions count as rows of one element, as in PyTorch', () => {
    const [x, i] = [tensor(5), tensor(0n)];
    expect(x.gather(0, i).toArray()).toBe(5);
    expect(x.gather(-1, ints([0, 0])).toArray()).toEqual([5, 5]);
    expect(x.scatterAdd(0, i, tensor(2)).toArray()).toBe(7);
    expect(x.indexSelect(0, i).toArray()).toBe(5);
    expect(tensor([5, 6]).indexSelect(0, tensor(1n)).toArray()).toEqual([6]);
    expect(tensor([5, 6]).gather(0, tensor(1n)).toArray()).toBe(6);
    expect(tensor([[5, 6]]).gather(0, zeros([0], { dtype: 'int64' })).shape).toEqual([0]);
    for (const fn of [() => x.gather(1, i), () => x.indexSelect(0, ints([0, 0]))])
      expect(codeOf(fn)).toBe('ERR_TENSOR_SHAPE');
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
  // Without a count there are as many classes as the largest label needs.
  const counted = oneHot(ints([0, 1, 2, 0], [2, 2]).t());
  expect(counted.toArray()).toEqual([
    [
      [1, 0, 0],
      [0, 0, 1],
    ],
    [
      [0, 1, 0],
      [1, 0, 0],
    ],
  ]);
  expect(oneHot(tensor(2n)).toArray()).toEqual([0, 0, 1]);
  for (const labels of [ints([]), ints([-1]), ints([-1, 2])])
    expect(codeOf(() => oneHot(labels))).toBe('ERR_TENSOR_ARGUMENT');
  expect(oneHot(ints([]), 2).shape).toEqual([0, 2]);
  expect(() => oneHot(tensor([1.5]))).toThrow('oneHot: expected indices of int32 or int64, got float32');
});
