// Checks small cases against numbers of PyTorch 2.13 that a test writes down.
import { expect } from 'vitest';
import type { NestedNumbers } from '../../src/core/tensor-core.ts';
import { fromHost, type Tensor } from '../../src/index.ts';

const near = (value: NestedNumbers): unknown =>
  Array.isArray(value) ? value.map(near) : Number.isFinite(value) ? expect.closeTo(value, 5) : value;

/** Returns a leaf with these values, which requires a gradient. */
export function leafOf(values: Tensor): Tensor {
  const leaf = values.clone();
  leaf.requiresGrad = true;
  return leaf;
}

/**
 * Checks `fn(...inputs)`, and the gradients of the inputs that require one. The elements of the result get the
 * gradients 1, 2, 3 and so on.
 */
export function expectCase(
  inputs: readonly Tensor[],
  fn: (...inputs: Tensor[]) => Tensor,
  out: NestedNumbers,
  ...grads: readonly NestedNumbers[]
): void {
  const result = fn(...inputs);
  expect(result.toArray()).toEqual(near(out));
  if (!result.requiresGrad) return;
  const counted = fromHost(
    Float64Array.from({ length: result.count }, (_, i) => i + 1),
    result.shape,
  );
  result.backward(counted.to(result.dtype));
  const leaves = inputs.filter((input) => input.requiresGrad);
  expect(leaves.map((leaf) => leaf.grad?.toArray())).toEqual(grads.map(near));
}
