// Counts of integers and of floats in bins, and the most frequent elements.

import { checkFlag } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aTensor, checkValue, finite, nonNegativeInteger } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { isFloat, isHalf } from '../../core/dtype.ts';
import { checkedDim, sameShape } from '../../core/shape.ts';
import type { Sorted, Tensor } from '../../core/tensor.ts';
import {
  badOption,
  differentShapes,
  emptyReduction,
  needsFloat,
  needsIndex,
  needsRank,
  shown,
} from '../../errors.ts';
import { div, ge, le, logicalAnd, minimum, mul, ne, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireFloat, requireTensor, to } from '../elementwise/convert.ts';
import { floor } from '../elementwise/unary.ts';
import { gather } from '../indexing/lookup.ts';
import { scatterAdd } from '../indexing/scatter.ts';
import { chosenAlong } from '../order/sorted.ts';
import { argmax, max, min } from '../reduce/reduce.ts';
import { cat } from '../shape/join.ts';
import { ofOne, sort } from '../shape/order.ts';
import { flatten, narrow } from '../shape/views.ts';
import { cummax, positionsAlong } from './running.ts';

/** Options of bincount(). */
export interface BincountOptions {
  /** A weight for each element, which has the shape of the numbers. */
  readonly weights?: Tensor;
  /** Minimum length of the result. Default 0. */
  readonly minLength?: number;
}

const bincountOptions = optionChecks<BincountOptions>({ weights: aTensor, minLength: nonNegativeInteger });

/**
 * Counts how often each number from 0 to the largest occurs in a vector of integers ≥ 0: int64. With weights, adds up
 * those of each number: float32 for weights of float32, else float64; int64 without elements. Waits for the largest
 * number.
 */
export function bincount(a: Tensor, options: BincountOptions = {}): Tensor {
  requireTensor('bincount', a);
  checkOptions('bincount', options, bincountOptions);
  const { weights, minLength = 0 } = options;
  if (isFloat(a.dtype) || a.dtype === 'bool') throw needsIndex('bincount', a.dtype);
  if (a.rank !== 1) throw needsRank('bincount', 1, a.shape);
  if (weights !== undefined && !sameShape(weights.shape, a.shape))
    throw differentShapes('bincount: weights', weights.shape, a.shape);
  const hasWeights = weights !== undefined && a.count > 0;
  const dtype = !hasWeights ? 'int64' : weights.dtype === 'float32' ? 'float32' : 'float64';
  return scope(() => {
    const { device } = a;
    if (a.count > 0 && min(a).item() < 0) throw badOption('bincount', 'integers ≥ 0', 'one below 0');
    const size = Math.max(minLength, a.count === 0 ? 0 : max(a).item() + 1);
    const added = hasWeights ? to(weights.detach(), dtype) : full(a.shape, 1, { dtype, device });
    return scatterAdd(full([size], 0, { dtype, device }), 0, to(a, 'int64'), added);
  });
}

/**
 * Counts the elements of `a`, float32 or float64, in `bins` of one width from `low` to `high`, both included; others
 * are left out. If both are equal, they are the least and the largest element, for which the host waits. Returns counts
 * in the dtype of `a`, without a gradient.
 */
export function histc(a: Tensor, bins = 100, low = 0, high = 0): Tensor {
  requireFloat('histc', a);
  if (isHalf(a.dtype)) throw needsFloat('histc of float32 or float64', a.dtype);
  if (!Number.isSafeInteger(bins) || bins < 1) throw badOption('histc: bins', 'an integer ≥ 1', shown(bins));
  checkValue('histc: low', low, finite);
  checkValue('histc: high', high, finite);
  if (low > high) throw badOption('histc: high', `a number ≥ ${low}, the lower end`, shown(high));
  return scope(() => {
    const values = flatten(a.detach());
    let [from, end] = [low, high];
    if (from === end && a.count > 0) [from, end] = [min(values).item(), max(values).item()];
    if (!Number.isFinite(from) || !Number.isFinite(end))
      throw badOption('histc', 'finite elements, or both ends of the range', `${from} and ${end}`);
    if (from === end) [from, end] = [from - 1, end + 1];
    const isInside = logicalAnd(ge(values, from), le(values, end));
    const position = floor(div(mul(sub(values, from), bins), end - from));
    const bin = to(where(isInside, minimum(position, bins - 1), 0), 'int64');
    const { dtype, device } = a;
    return scatterAdd(full([bins], 0, { dtype, device }), 0, bin, to(isInside, dtype));
  });
}

/**
 * Returns the most frequent element along `dim`, the smallest of several, and the position of its last occurrence. Each
 * NaN counts as a different element.
 */
export function mode(a: Tensor, dim = -1, keepDim = false): Sorted {
  requireTensor('mode', a);
  checkFlag('mode', 'keepDim', keepDim);
  if (a.rank === 0) return ofOne(a, (row) => mode(row, dim, true));
  const at = checkedDim('mode', dim, a.rank);
  const size = a.shape[at]!;
  if (size === 0) throw emptyReduction('mode', a.shape);
  return scope(() => {
    const { values, indices } = sort(a.detach(), at);
    const positions = positionsAlong(a, at);
    const changes = ne(narrow(values, at, 1, size - 1), narrow(values, at, 0, size - 1));
    const first = full(a.shape.with(at, 1), 1, { dtype: 'bool', device: a.device });
    const starts = where(cat([first, changes], at), positions, 0);
    const length = sub(positions, cummax(starts, at).values);
    const best = argmax(length, at, true);
    return chosenAlong(a, gather(indices, at, best), at, keepDim);
  });
}
