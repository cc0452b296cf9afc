// Compares an op with PyTorch's stored results (torch-layers.ts), in value and gradients.
import { expect } from 'vitest';
import { type Shape, type Tensor, tensor } from '../../src/index.ts';
import { expectClose } from './kernels-oracle.ts';

/**
 * Returns an input of the stored results, which requires a gradient. Element i is ((i k mod 11) − 5) / 4, one of the
 * quarters from −1.25 to 1.25.
 */
export function torchData(shape: Shape, k: number): Tensor {
  const count = shape.reduce((a, b) => a * b, 1);
  const values = Float64Array.from({ length: count }, (_, i) => (((i * k) % 11) - 5) / 4);
  return tensor(values, { shape, requiresGrad: true });
}

interface Stored {
  readonly shape: Shape;
  readonly out: readonly number[];
  readonly grads: readonly (readonly number[])[];
}

/** Runs `op` in float64 on inputs of these shapes, with k = 7, 5 and 3, and compares the result and the gradients. */
export function expectTorch(
  stored: Stored,
  shapes: readonly Shape[],
  op: (...inputs: Tensor[]) => Tensor,
): void {
  const inputs = shapes.map((shape, i) => torchData(shape, [7, 5, 3][i]!));
  const out = op(...inputs);
  expect(out.shape).toEqual(stored.shape);
  expectClose(out.dataSync(), stored.out, 1e-6);
  out.backward(torchData(stored.shape, 3).detach());
  for (const [i, input] of inputs.entries()) expectClose(input.grad!.dataSync(), stored.grads[i]!, 1e-6);
}
