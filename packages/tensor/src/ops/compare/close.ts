// Comparisons of whole tensors. They return a boolean, so the host waits for a device.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, nonNegative } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { CloseOptions } from '../../core/op-options.ts';
import { sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mixedDtypes } from '../../errors.ts';
import { add, eq, le, logicalAnd, logicalOr, lt, mul, ne, sub } from '../elementwise/binary.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { abs } from '../elementwise/unary.ts';
import { jointDevice } from '../joint-device.ts';
import { all } from '../reduce/reduce.ts';

const closeOptions = optionChecks<CloseOptions>({ rtol: nonNegative, atol: nonNegative, equalNan: flag });

/**
 * Returns bools: true where |a − b| ≤ atol + rtol · |b|. Tensors are broadcast and have one dtype. Infinities are close
 * to equal ones only.
 */
export const isclose = (a: Tensor, b: Tensor, options: CloseOptions = {}): Tensor =>
  scope(() => areClose('isclose', a, b, options));

/** Returns whether isclose is true for all elements. Waits for the result. */
export const allclose = (a: Tensor, b: Tensor, options: CloseOptions = {}): boolean =>
  scope(() => all(areClose('allclose', a, b, options)).item() !== 0);

function areClose(name: string, first: Tensor, second: Tensor, options: CloseOptions): Tensor {
  requireTensor(name, first);
  requireTensor(name, second);
  checkOptions(name, options, closeOptions);
  if (first.dtype !== second.dtype) throw mixedDtypes(name, first.dtype, second.dtype);
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options;
  const [a, b] = [first.detach(), second.detach()];
  let close = eq(a, b);
  if (isFloat(a.dtype) && equalNan) close = logicalOr(close, logicalAnd(ne(a, a), ne(b, b)));
  if (rtol === 0 && atol === 0) return close;
  // Integers are compared in float32, in which differences of uint8 do not wrap around.
  const [left, right] = isFloat(a.dtype) ? [a, b] : [to(a, 'float32'), to(b, 'float32')];
  const distance = abs(sub(left, right));
  const allowed = add(mul(abs(right), rtol), atol);
  // An infinite distance is never allowed, not even by an infinite bound.
  return logicalOr(close, logicalAnd(lt(distance, Infinity), le(distance, allowed)));
}

/** Returns whether two tensors have the same shape and equal elements; NaN equals nothing. Waits for the result. */
export function equal(a: Tensor, b: Tensor): boolean {
  requireTensor('equal', a);
  requireTensor('equal', b);
  jointDevice('equal', a, b);
  return sameShape(a.shape, b.shape) && scope(() => all(eq(a, b)).item() !== 0);
}
