// Makes tensors from formulas that training.py computes, too.
import { type Shape, type Tensor, tensor } from '../../../../src/index.ts';

export const countOf = (shape: Shape): number => shape.reduce((a, b) => a * b, 1);

/** Returns a tensor whose element i is sin(i × 0.7 + n) × scale. */
export function wave(shape: Shape, n: number, scale = 1.5, dtype: 'float32' | 'float64' = 'float32'): Tensor {
  const values = Float64Array.from({ length: countOf(shape) }, (_, i) => Math.sin(i * 0.7 + n) * scale);
  return tensor(values, { shape, dtype, requiresGrad: true });
}

/** Returns a number between −1 and 1. Unlike those of a wave, matrices of such numbers have full rank. */
export function hashed(i: number, n: number): number {
  const x = Math.sin(i * 12.9898 + n * 78.233) * 43758.5453;
  return (x - Math.floor(x)) * 2 - 1;
}

/** Returns the labels (5 i + 1) mod `classes`. */
export const labels = (shape: Shape, classes: number): Tensor =>
  tensor(
    Int32Array.from({ length: countOf(shape) }, (_, i) => (i * 5 + 1) % classes),
    { shape, dtype: 'int64' },
  );
