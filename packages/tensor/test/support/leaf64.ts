// Helpers that compare gradients in float64, in which finite differences have many digits.
import { generator, gradCheck, randn, type Shape, type Tensor, tensor } from '../../src/index.ts';

/** Returns a float64 tensor of normal numbers that requires a gradient. */
export function leaf64(shape: Shape, seed = 1): Tensor {
  const leaf = randn(shape, { generator: generator(seed) }).to('float64');
  leaf.requiresGrad = true;
  return leaf;
}

/** Compares the gradients of `fn` for float64 inputs with finite differences. Throws if they differ. */
export const gradCheck64 = (fn: (...inputs: Tensor[]) => Tensor, inputs: readonly Tensor[]): void =>
  gradCheck(fn, inputs, { epsilon: 1e-5, tolerance: 1e-6 });

/** Returns the gradients of the summed result for inputs given as float64 vectors, or as numbers for shape []. */
export function gradientsOf(
  fn: (a: Tensor, b: Tensor, c: Tensor) => Tensor,
  ...values: readonly (number | readonly number[])[]
): unknown[] {
  const leaves = values.map((each) => tensor(each as number[], { dtype: 'float64', requiresGrad: true }));
  fn(...(leaves as [Tensor, Tensor, Tensor]))
    .sum()
    .backward();
  return leaves.map((leaf) => leaf.grad!.toArray());
}
