// Reductions that leave NaN out, counts, and pairs of extremes or moments.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { AminmaxOptions, Dims, VarianceOptions } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { div, eq, logicalOr, ne } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireFloat, requireTensor, to } from '../elementwise/convert.ts';
import { max, mean, min, sum } from '../reduce/reduce.ts';
import { std } from '../reduce/variance.ts';
import { reshape } from '../shape/views.ts';

/** Sums the elements that are not NaN, as sum() does. */
export function nansum(a: Tensor, dims?: Dims, keepDim = false): Tensor {
  requireTensor('nansum', a);
  if (!isFloat(a.dtype)) return sum(a, dims, keepDim);
  return scope(() => sum(where(eq(a.detach(), a.detach()), a, 0), dims, keepDim));
}

/** Computes the mean of the floats that are not NaN; NaN if all are, as is the gradient then. */
export function nanmean(a: Tensor, dims?: Dims, keepDim = false): Tensor {
  requireFloat('nanmean', a);
  return scope(() => {
    const isPresent = eq(a.detach(), a.detach());
    const count = sum(isPresent, dims, true);
    const isNone = eq(count, 0);
    const total = sum(where(logicalOr(isPresent, isNone), a, 0), dims, keepDim);
    return div(total, reshape(where(isNone, NaN, to(count, a.dtype)), total.shape));
  });
}

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

/** Returns [standard deviation, mean] over `dims`, as std() and mean() do. */
export function stdMean(a: Tensor, dims?: Dims, options: VarianceOptions = {}): [Tensor, Tensor] {
  return scope(() => [std(a, dims, options), mean(a, dims, options.keepDim ?? false)]);
}
