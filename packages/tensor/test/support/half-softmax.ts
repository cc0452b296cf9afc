// Compares softmax of 16 bits, and its gradient, with the float64 one: far more exact than the exponential of a
// logarithm that was rounded to 16 bits.
import { expect } from 'vitest';
import { type DeviceName, generator, randn, softmax, type Tensor } from '../../src/index.ts';

export const halfSoftmaxCases = [
  ['float16', -1],
  ['bfloat16', -1],
  ['bfloat16', 0],
] as const;

const roundings = { float16: 2 ** -11, bfloat16: 2 ** -8 };
const valuesOf = (t: Tensor): Float64Array => t.to('cpu').to('float64').dataSync() as Float64Array;

/** Throws unless each value differs from the wanted one by at most its tolerance. */
function expectNear(got: Tensor, want: Tensor, tolerance: (i: number) => number): void {
  const [values, exact] = [valuesOf(got), valuesOf(want)];
  const far = values.findIndex((value, i) => !(Math.abs(value - exact[i]!) <= tolerance(i)));
  expect(far < 0 ? null : [far, values[far], exact[far]]).toBeNull();
}

export function checkHalfSoftmax(
  dtype: 'float16' | 'bfloat16',
  dim: number,
  device: DeviceName = 'cpu',
): void {
  const random = generator(3);
  const logits = randn([7, 33], { generator: random }).mul(4).to(dtype);
  const weights = randn([7, 33], { generator: random }).to(dtype);
  const a = logits.to(device).detach();
  const exact = logits.to('float64').detach();
  for (const leaf of [a, exact]) leaf.requiresGrad = true;
  const [probs, wanted] = [softmax(a, dim), softmax(exact, dim)];
  expect([probs.dtype, probs.shape]).toEqual([dtype, [7, 33]]);
  const rounding = 1.01 * roundings[dtype];
  const p = valuesOf(wanted);
  const rounded = (i: number): number => rounding * p[i]! + 2 ** -25;
  expectNear(probs, wanted, rounded);
  probs.backward(weights.to(device));
  wanted.backward(weights.to('float64'));
  // p · (g − Σ g · p): p is rounded twice, and so is each product of the sum by its p.
  const largest = weights.abs().max().item();
  expectNear(a.grad!, exact.grad!, (i) => rounded(i) * 5 * largest);
}
