// Comparisons of whole tensors. They give a boolean, so the host waits for a device.

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
 * Returns whether |a − b| ≤ atol + rtol · |b| for all elements. Tensors are broadcast and have one dtype. Infinities
 * are close to equal ones only. Waits for the result.
 */
export function allclose(a: Tensor, b: Tensor, options: CloseOptions = {}): boolean {
  requireTensor('allclose', a);
  requireTensor('allclose', b);
  checkOptions('allclose', options, closeOptions);
  if (a.dtype !== b.dtype) throw mixedDtypes('allclose', a.dtype, b.dtype);
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options;
  return scope(() => all(areClose(a.detach(), b.detach(), rtol, atol, equalNan)).item() !== 0);
}

/** Returns bools: where elements are close. Both tensors have one dtype and require no gradient. */
function areClose(a: Tensor, b: Tensor, rtol: number, atol: number, equalNan: boolean): Tensor {
  let close = eq(a, b);
  if (isFloat(a.dtype) && equalNan) close = logicalOr(close, logicalAnd(ne(a, a), ne(b, b)));
  if (rtol === 0 && atol === 0) return close;
  const [left, right] = a.dtype === 'bool' ? [to(a, 'int32'), to(b, 'int32')] : [a, b];
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
