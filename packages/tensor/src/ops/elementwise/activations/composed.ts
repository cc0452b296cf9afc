// Activations that are composed of recorded operations.
import { notAnInteger } from '../../../checks/argument-errors.ts';
import { checkNumber } from '../../../checks/arguments.ts';
import { oddHalves } from '../../../checks/op-errors.ts';
import { scope } from '../../../core/context.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badDim } from '../../../errors.ts';
import { narrow } from '../../shape/views.ts';
import { add, div, gt, mul, sub } from '../binary.ts';
import { where } from '../choose.ts';
import { requireFloat, requireTensor } from '../convert.ts';
import { abs, sigmoid, tanh } from '../unary.ts';

/** Returns a where it is positive, else slope × a. Floats only. */
export function leakyRelu(a: Tensor, slope = 0.01): Tensor {
  requireFloat('leakyRelu', a);
  checkNumber('leakyRelu', 'slope', slope);
  return scope(() => where(gt(a, 0), a, mul(a, slope)));
}

/** Computes a / (1 + |a|). Integers become float32. */
export function softsign(a: Tensor): Tensor {
  requireTensor('softsign', a);
  return scope(() => div(a, add(abs(a), 1)));
}

/** Computes a − tanh a. Integers become float32. */
export function tanhshrink(a: Tensor): Tensor {
  requireTensor('tanhshrink', a);
  return scope(() => sub(a, tanh(a)));
}

/**
 * Splits a dimension, the last one by default, into halves, and multiplies the first one by the sigmoid of the second
 * one. Floats only. Throws if the size of the dimension is odd.
 */
export function glu(a: Tensor, dim = -1): Tensor {
  requireFloat('glu', a);
  if (!Number.isSafeInteger(dim)) throw notAnInteger('glu', 'dim', dim);
  if (dim < -a.rank || dim >= a.rank) throw badDim('glu', dim, a.rank);
  const at = dim < 0 ? dim + a.rank : dim;
  const size = a.shape[at]!;
  if (size % 2 !== 0) throw oddHalves('glu', at, a.shape);
  const half = size / 2;
  return scope(() => mul(narrow(a, at, 0, half), sigmoid(narrow(a, at, half, half))));
}
