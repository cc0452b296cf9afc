// Products that are scaled and added to another tensor.

import { isRecording } from '../../autograd/node.ts';
import { checkFits } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anyNumber } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { isFloat, promoteTypes } from '../../core/dtype.ts';
import type { AddedOptions } from '../../core/op-options.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, mixedDtypes, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, mul } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireNumbers, requireTensor, to } from '../elementwise/convert.ts';
import { sum } from '../reduce/reduce.ts';
import { expand } from '../shape/views.ts';
import { bmm, mm, mv, outer } from './products.ts';

const addedOptions = optionChecks<AddedOptions>({ beta: anyNumber, alpha: anyNumber });

/** Returns factor · x. For a factor of 0 it is 0, also where x is infinite or NaN, and so is the gradient. */
function scaled(x: Tensor, factor: number): Tensor {
  if (factor === 1) return x;
  if (factor !== 0) return mul(x, factor);
  // Nothing is chosen from x.
  return where(full([], 0, { dtype: 'bool', device: x.device }), x, 0);
}

/**
 * Computes beta · input + alpha · product. The input is broadcast to the product. As in BLAS and PyTorch, a beta of 0
 * hides NaN and infinities of the input, and an alpha of 0 those of the product.
 */
function added(
  op: string,
  input: Tensor,
  a: Tensor,
  b: Tensor,
  options: AddedOptions,
  product: (a: Tensor, b: Tensor) => Tensor,
): Tensor {
  const lowered = recast('low', [input, a, b], (x, y, z) => added(op, x!, y!, z!, options, product));
  if (lowered) return lowered;
  requireTensor(op, input);
  requireTensor(op, a);
  requireTensor(op, b);
  checkOptions(op, options, addedOptions);
  requireNumbers(op, a);
  if (a.dtype !== b.dtype) throw mixedDtypes(op, a.dtype, b.dtype);
  if (input.dtype !== a.dtype) throw mixedDtypes(op, input.dtype, a.dtype);
  const { beta = 1, alpha = 1 } = options;
  const whole = (factor: number): number => {
    checkFits(op, factor, a.dtype);
    return isFloat(a.dtype) ? factor : Math.trunc(factor);
  };
  const [own, scale] = [whole(beta), whole(alpha)];
  return scope(() => {
    const made = scaled(product(a, b), scale);
    const stretched = expand(input, made.shape as Shape);
    return own === 0 && !isRecording(input) ? made : add(scaled(stretched, own), made);
  });
}

/** Adds the product of two matrices to `input`, which is broadcast: [m, n] for [m, k] and [k, n]; all of one dtype. */
export const addmm = (input: Tensor, a: Tensor, b: Tensor, options: AddedOptions = {}): Tensor =>
  added('addmm', input, a, b, options, mm);

/** Adds the product of a matrix and a vector to `input`, which is broadcast: [m] for [m, k] and [k]. */
export const addmv = (input: Tensor, a: Tensor, b: Tensor, options: AddedOptions = {}): Tensor =>
  added('addmv', input, a, b, options, mv);

/**
 * Adds the outer product of two vectors to `input`, which is broadcast: [m, n] for [m] and [n]. Other than the products
 * of matrices, it takes bool and several dtypes, which it converts to their joint dtype, and NaN and infinities of the
 * vectors show in the result for an alpha of 0, too.
 */
export function addr(input: Tensor, a: Tensor, b: Tensor, options: AddedOptions = {}): Tensor {
  const lowered = recast('low', [input, a, b], (x, y, z) => addr(x!, y!, z!, options));
  if (lowered) return lowered;
  for (const tensor of [input, a, b]) requireTensor('addr', tensor);
  checkOptions('addr', options, addedOptions);
  const dtype = [a.dtype, b.dtype].reduce(promoteTypes, input.dtype);
  const wide = dtype === 'bool' ? 'uint8' : dtype;
  const factor = (value = 1): number => {
    if (!isFloat(dtype) && !Number.isInteger(value))
      throw badOption('addr: a factor', 'an integer', shown(value));
    return dtype === 'bool' ? Number(value !== 0) : value;
  };
  const [beta, alpha] = [factor(options.beta), factor(options.alpha)];
  const product = (x: Tensor, y: Tensor): Tensor => (alpha === 1 ? outer(x, y) : mul(outer(x, y), alpha));
  return scope(() => to(added('addr', to(input, wide), to(a, wide), to(b, wide), { beta }, product), dtype));
}

/** Adds the products of two batches to `input`, which is broadcast: [b, m, n] for [b, m, k] and [b, k, n]. */
export const baddbmm = (input: Tensor, a: Tensor, b: Tensor, options: AddedOptions = {}): Tensor =>
  added('baddbmm', input, a, b, options, bmm);

/** Adds the sum of the products of two batches of matrices to `input`: [m, n] for [b, m, k] and [b, k, n]. */
export const addbmm = (input: Tensor, a: Tensor, b: Tensor, options: AddedOptions = {}): Tensor =>
  added('addbmm', input, a, b, options, (x, y) => to(sum(bmm(x, y), 0), x.dtype));
