// Tests cat, stack, split and chunk.
import { describe, expect, test } from 'vitest';
import { arange, cat, chunk, ones, split, stack, tensor, zeros } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

test('cat passes over tensors of shape [0], as PyTorch', () => {
  const nothing = zeros([0], { requiresGrad: true });
  const a = ones([2, 3], { requiresGrad: true });
  for (const list of [
    [nothing, a],
    [a, nothing],
  ])
    expect(cat(list, -1)).toMatchObject({ shape: [2, 3] });
  cat([nothing, a, nothing], 1).sum().backward();
  expect([nothing.grad!.shape, a.grad!.toArray()]).toEqual([
    [0],
    [
      [1, 1, 1],
      [1, 1, 1],
    ],
  ]);
  expect(cat([nothing, nothing]).shape).toEqual([0]);
  expect(cat([zeros([0]), zeros([0, 3])]).shape).toEqual([0, 3]);
  expect(codeOf(() => cat([a, zeros([0, 2])]))).toBe('ERR_TENSOR_SHAPE');
});

test('chunk and split of nothing', () => {
  // biome-ignore format: one line
  expect(chunk(zeros([0, 2]), 3).map((part) => part.shape)).toEqual([[0, 2], [0, 2], [0, 2]]);
  expect(split(zeros([0, 2]), 0).map((part) => part.shape)).toEqual([[0, 2]]);
  expect(codeOf(() => split(zeros([2]), 0))).toBe('ERR_TENSOR_ARGUMENT');
});

describe('cat and stack', () => {
  test('put tensors side by side along any dimension, in the dtype in which they meet', () => {
    const a = arange(4).reshape([2, 2]);
    const b = tensor([[7], [8]], { dtype: 'int64' });
    expect(cat([a, b], 1).toArray()).toEqual([
      [0, 1, 7],
      [2, 3, 8],
    ]);
    expect(cat([a, b], 1).dtype).toBe('float32');
    expect(cat([a.t(), a]).toArray()).toEqual([
      [0, 2],
      [1, 3],
      [0, 1],
      [2, 3],
    ]);
    expect(cat([zeros([0, 2]), a]).toArray()).toEqual(a.toArray());
    expect(stack([a, a.t()], -1).toArray()).toEqual([
      [
        [0, 0],
        [1, 2],
      ],
      [
        [2, 1],
        [3, 3],
      ],
    ]);
    expect(codeOf(() => cat([a, zeros([3, 3])]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => stack([a, b]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => cat([]))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => stack([])).toThrow('stack: tensors: expected at least one, got none');
  });

  test('pass gradients on, also to one tensor that is there twice', () => {
    gradCheck64((a, b) => cat([a!, b!, a!], 1).square(), [leaf64([2, 3]), leaf64([2, 1], 2)]);
    gradCheck64((a, b) => stack([a!, b!.t()], 1).square(), [leaf64([2, 3]), leaf64([3, 2], 2)]);
  });
});

describe('split and chunk', () => {
  test('cut into even parts, given sizes, or a number of parts', () => {
    const a = arange(10).reshape([5, 2]);
    expect(a.split(2).map((part) => part.shape)).toEqual([
      [2, 2],
      [2, 2],
      [1, 2],
    ]);
    expect(a.split([1, 4]).map((part) => part.shape[0])).toEqual([1, 4]);
    expect(a.chunk(3).map((part) => part.shape[0])).toEqual([2, 2, 1]);
    expect(a.chunk(2, 1)[1]!.toArray()).toEqual([[1], [3], [5], [7], [9]]);
    expect(cat(split(a, 2)).toArray()).toEqual(a.toArray());
    expect(codeOf(() => a.split([1, 1]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => a.chunk(0))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('pass gradients on', () => {
    gradCheck64(
      (a) => {
        const [left, right] = a!.split([1, 2], 1);
        return cat([right!.square(), left!.exp()], 1);
      },
      [leaf64([2, 3])],
    );
  });
});
