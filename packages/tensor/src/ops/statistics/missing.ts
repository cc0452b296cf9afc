// Reductions that leave NaN out, counts, and pairs of extremes or moments.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import type { AminmaxOptions, Dims } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { ne } from '../elementwise/binary.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { max, min, sum } from '../reduce/reduce.ts';

/** Counts the elements that are not 0, over `dims` or all dimensions: int64. NaN is not 0. */
export function countNonzero(a: Tensor, dims?: Dims): Tensor {
  requireTensor('countNonzero', a);
  return scope(() => sum(ne(a.detach(), 0), dims));
}

/** Returns the maxima over `dims`, or of all elements, as max() does. Equal maxima share the gradient. */
export const amax = (a: Tensor, dims: Dims = [], keepDim = false): Tensor => max(a, dims, keepDim);
/** Returns the minima over `dims`, or of all elements, as min() does. Equal minima share the gradient. */
export const amin = (a: Tensor, dims: Dims = [], keepDim = false): Tensor => min(a, dims, keepDim);

const aminmaxOptions = optionChecks<AminmaxOptions>({ keepDim: flag });

/** Returns [minima, maxima] along `dim`, or of all elements. */
export function aminmax(a: Tensor, dim?: number, options: AminmaxOptions = {}): [Tensor, Tensor] {
  checkOptions('aminmax', options, aminmaxOptions);
  const { keepDim = false } = options;
  const dims = dim ?? [];
  return scope(() => [amin(a, dims, keepDim), amax(a, dims, keepDim)]);
}
