// Running products, logarithms of sums and extremes along a dimension of one element or none.
import { describe, expect, test } from 'vitest';
import { cummax, cummin, cumprod, full, logcumsumexp, noGrad, type Tensor } from '../../../src/index.ts';

const results: [name: string, of: (a: Tensor, dim: number) => Tensor][] = [
  ['cumprod', cumprod],
  ['logcumsumexp', logcumsumexp],
  ['values of cummax', (a, dim) => cummax(a, dim).values],
  ['indices of cummax', (a, dim) => cummax(a, dim).indices],
  ['values of cummin', (a, dim) => cummin(a, dim).values],
  ['indices of cummin', (a, dim) => cummin(a, dim).indices],
];

describe.each(results)('the %s', (_, of) => {
  test.each([[[1]], [[2, 1]], [[2, 1, 3]], [[]]])('of shape %j have memory of their own', (shape) => {
    const a = full(shape, 2);
    const result = of(a, shape.length === 3 ? 1 : -1);
    const before = result.clone();
    a.fill_(5);
    expect(result.toArray()).toEqual(before.toArray());
    a.dispose();
    // The first element alone: a result whose elements share memory would change as a whole.
    const [first, ...others] = Array.from(result.reshape([-1]).unbind());
    noGrad(() => first!.fill_(9));
    expect(others.every((other) => other.item() !== 9)).toBe(true);
    expect(first!.item()).toBe(9);
  });

  test('of no elements can be disposed without the input', () => {
    const a = full([0], 2);
    of(a, 0).dispose();
    expect(a.toArray()).toEqual([]);
  });
});

test('gradients pass through dimensions of one element', () => {
  const a = full([2, 1], 2, { requiresGrad: true });
  cumprod(a, 1).add(logcumsumexp(a, 1)).sum().backward();
  expect(a.grad!.toArray()).toEqual([[2], [2]]);
});
