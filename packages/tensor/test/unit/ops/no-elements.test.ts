// Operations that take other dtypes, or other values, where there are no elements. PyTorch gives the same results.
import { describe, expect, test } from 'vitest';
import * as t from '../../../src/index.ts';

const bools = (...shape: number[]): t.Tensor => t.zeros(shape, { dtype: 'bool' });
const integers = ['int64', 'int32', 'uint8'] as const;

describe.each(integers)('of %s', (dtype) => {
  const empty = t.zeros([2, 0], { dtype });

  test.each([t.softmax, t.logSoftmax, t.softmin])('%o gives no elements of that dtype', (op) => {
    const found = op(empty, 0);
    expect(found.dtype).toBe(dtype);
    expect(found.shape).toEqual([2, 0]);
    expect(() => op(empty, 2)).toThrow('expected a dimension from -2 to 1, got 2');
    expect(() => op(t.ones([1], { dtype }))).toThrow('expected a floating dtype');
  });

  test.each([t.remainder, t.fmod, t.floorDivide])('%o does not look at a divisor of 0', (op) => {
    for (const divisor of [0, t.tensor(0, { dtype }), t.tensor([0], { dtype })]) {
      const found = op(empty, divisor);
      expect(found.dtype).toBe(dtype);
      expect(found.shape).toEqual([2, 0]);
    }
    expect(() => op(t.ones([1], { dtype }), 0)).toThrow('an integer is divided by 0');
  });
});

describe('products of bool', () => {
  test.each<[a: number[], b: number[], out: number[]]>([
    [
      [0, 2],
      [2, 3],
      [0, 3],
    ],
    [
      [2, 0],
      [0, 3],
      [2, 3],
    ],
    [[2, 0], [0], [2]],
    [[0], [0, 2], [2]],
    [
      [1, 2, 0],
      [1, 0, 2],
      [1, 2, 2],
    ],
    [
      [2, 2, 0],
      [0, 2],
      [2, 2, 2],
    ],
  ])('%j and %j are false', (a, b, out) => {
    const found = t.matmul(bools(...a), bools(...b));
    expect(found.dtype).toBe('bool');
    expect(found.shape).toEqual(out);
    expect(found.flatten().toArray()).toEqual(
      bools(...out)
        .flatten()
        .toArray(),
    );
  });

  test('have other names', () => {
    const [a, b] = [bools(2, 0), bools(3, 0)];
    const all = [t.inner(a, b), t.linear(a, b), t.tensordot(a, b.t(), 1), t.einsum('ij,kj->ik', a, b)];
    for (const found of all) expect(found.toArray()).toEqual(bools(2, 3).toArray());
  });

  test('are refused for two vectors, and where there are elements', () => {
    for (const op of [t.matmul, t.dot, t.inner])
      expect(() => op(bools(0), bools(0))).toThrow('expected numbers, got bool');
    expect(() => t.matmul(bools(2, 2), bools(2, 2))).toThrow('expected numbers, got bool');
  });
});
