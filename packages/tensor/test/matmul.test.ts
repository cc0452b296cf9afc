import { describe, expect, test } from 'vitest';
import { generator, gradCheck, linear, matmul, randn, type Tensor, tensor, zeros } from '../src/index.ts';
import { codeOf } from './code-of.ts';

const from = generator(11);
const leaf = (...shape: number[]): Tensor => randn(shape, { generator: from, requiresGrad: true });

describe('matmul', () => {
  test('multiplies matrices and vectors in every combination', () => {
    const a = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const b = tensor([
      [1, 0],
      [0, 1],
      [2, 2],
    ]);
    expect(matmul(a, b).toArray()).toEqual([
      [7, 8],
      [16, 17],
    ]);
    expect(matmul(a, tensor([1, 1, 1])).toArray()).toEqual([6, 15]);
    expect(matmul(tensor([1, 1]), a).toArray()).toEqual([5, 7, 9]);
    expect(matmul(tensor([1, 2]), tensor([3, 4])).item()).toBe(11);
    expect(matmul(zeros([2, 0]), zeros([0, 3])).toArray()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });

  test.each([
    [
      [2, 3],
      [3, 4],
    ],
    [[2, 3], [3]],
    [[3], [3, 2]],
    [[3], [3]],
    [
      [1, 1],
      [1, 1],
    ],
  ])('gradients of %j × %j', (a, b) => {
    gradCheck((x, y) => matmul(x!, y!), [leaf(...a), leaf(...b)]);
  });

  test('gradients of a matrix times itself, and of one used twice', () => {
    gradCheck((x) => matmul(x!, x!), [leaf(3, 3)]);
    gradCheck((x, y) => matmul(matmul(x!, y!), y!), [leaf(2, 3), leaf(3, 3)]);
  });

  test('refuses shapes that do not fit', () => {
    expect(() => matmul(zeros([2, 3]), zeros([2, 3]))).toThrow('matmul: cannot multiply [2, 3] by [2, 3]');
    expect(codeOf(() => matmul(zeros([2, 2, 3]), zeros([3, 3, 1])))).toBe('ERR_TENSOR_SHAPE');
  });
});

describe('linear', () => {
  test('equals x · wᵀ + b for any leading dimensions', () => {
    const [w, b] = [leaf(4, 3), leaf(4)];
    for (const shape of [[3], [2, 3], [2, 5, 3], [0, 3]]) {
      const x = leaf(...shape);
      const flat = matmul(x.reshape([-1, 3]), w.t()).add(b);
      const got = linear(x, w, b);
      expect(got.shape).toEqual([...shape.slice(0, -1), 4]);
      const want = flat.dataSync();
      for (const [i, value] of got.dataSync().entries()) expect(value).toBeCloseTo(Number(want[i]), 5);
    }
  });

  test.each([[[3]], [[2, 3]], [[2, 2, 3]]])('gradients for x %j', (shape) => {
    gradCheck((x, w, b) => linear(x!, w!, b!), [leaf(...shape), leaf(4, 3), leaf(4)]);
    gradCheck((x, w) => linear(x!, w!, null), [leaf(...shape), leaf(4, 3)]);
  });

  test('names all shapes when they do not fit', () => {
    expect(() => linear(zeros([2, 3]), zeros([4, 5]), zeros([4]))).toThrow('x [2, 3], w [4, 5], b [4]');
    expect(codeOf(() => linear(zeros([2, 3]), zeros([4, 3]), zeros([3])))).toBe('ERR_TENSOR_SHAPE');
  });
});
