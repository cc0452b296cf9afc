// Results that follow from a sort: orders, single ranks and medians.

import { isRecording } from '../../autograd/node.ts';
import { notOfBool } from '../../checks/argument-errors.ts';
import { checkFlag } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { isFloat } from '../../core/dtype.ts';
import type { ArgsortOptions } from '../../core/op-options.ts';
import { checkedDim } from '../../core/shape.ts';
import type { Sorted, Tensor } from '../../core/tensor.ts';
import { badOption, emptyReduction, shown } from '../../errors.ts';
import { div, eq, logicalAnd, logicalOr, maximum, ne, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { floor } from '../elementwise/unary.ts';
import { gather } from '../indexing/lookup.ts';
import { any, max, sum } from '../reduce/reduce.ts';
import { ofOne, sort } from '../shape/order.ts';
import { flatten, narrow, squeeze } from '../shape/views.ts';

const argsortOptions = optionChecks<ArgsortOptions>({ descending: flag, stable: flag });

/** Returns the int64 positions that sort `a` along `dim`. Equal elements keep their order, also without `stable`. */
export function argsort(a: Tensor, dim = -1, options: ArgsortOptions = {}): Tensor {
  requireTensor('argsort', a);
  checkOptions('argsort', options, argsortOptions);
  const { descending = false } = options;
  return scope(() => sort(a.detach(), dim, { descending }).indices);
}

/** Sorts along the first dimension. */
export function msort(a: Tensor): Tensor {
  requireTensor('msort', a);
  return scope(() => sort(a, 0).values);
}

/**
 * Returns the elements at `positions`, int64 with size 1 along `dim`, and these positions. Gradients go to the
 * elements. Drops `dim` unless `keepDim`.
 */
export function chosenAlong(a: Tensor, positions: Tensor, dim: number, keepDim: boolean): Sorted {
  const values = gather(a, dim, positions);
  if (keepDim) return { values, indices: positions };
  return { values: squeeze(values, dim), indices: squeeze(positions, dim) };
}

function requireOrdered(op: string, a: Tensor): void {
  requireTensor(op, a);
  if (a.dtype === 'bool') throw notOfBool(op, ".to('uint8')");
}

/** Returns the element of rank `k` along `dim`, counted from 1 in ascending order, and its position. NaN is last. */
export function kthvalue(a: Tensor, k: number, dim = -1, keepDim = false): Sorted {
  requireOrdered('kthvalue', a);
  checkFlag('kthvalue', 'keepDim', keepDim);
  if (a.rank === 0) return ofOne(a, (row) => kthvalue(row, k, dim, true));
  const at = checkedDim('kthvalue', dim, a.rank);
  const size = a.shape[at]!;
  if (!Number.isSafeInteger(k) || k < 1 || k > size)
    throw badOption(
      'kthvalue: k',
      size === 0 ? 'elements to choose from' : `an integer from 1 to ${size}`,
      shown(k),
    );
  return scope(() => {
    const { indices } = sort(a.detach(), at);
    return chosenAlong(a, narrow(indices, at, k - 1, 1), at, keepDim);
  });
}

/** Returns the positions of medians along `dim`. `skipsNaN`: whether NaN does not take part, unless all are NaN. */
function medianPositions(a: Tensor, dim: number, skipsNaN: boolean): Tensor {
  const size = a.shape[dim]!;
  const { indices } = sort(a.detach(), dim);
  const middle = Math.floor((size - 1) / 2);
  if (!isFloat(a.dtype)) return narrow(indices, dim, middle, 1);
  const missing = ne(a.detach(), a.detach());
  if (skipsNaN) {
    const present = sum(eq(missing, 0), dim, true);
    const half = to(floor(div(to(maximum(sub(present, 1), 0), 'float64'), 2)), 'int64');
    return gather(indices, dim, half);
  }
  // If there is a NaN, the first one, which follows the numbers in sorted order, is the median.
  const numbers = sum(eq(missing, 0), dim, true);
  return gather(indices, dim, where(any(missing, dim, true), numbers, middle));
}

function medians(op: string, a: Tensor, dim: number, keepDim: boolean, skipsNaN: boolean): Sorted {
  requireOrdered(op, a);
  checkFlag(op, 'keepDim', keepDim);
  if (a.rank === 0) return ofOne(a, (row) => medians(op, row, dim, true, skipsNaN));
  const at = checkedDim(op, dim, a.rank);
  if (a.shape[at] === 0) throw emptyReduction(op, a.shape);
  return scope(() => chosenAlong(a, medianPositions(a, at, skipsNaN), at, keepDim));
}

/**
 * Returns `value`, an element of `a`, with a gradient that the equal elements share evenly, as in PyTorch; NaN counts
 * as equal to NaN.
 */
function sharedByEqual(a: Tensor, value: Tensor): Tensor {
  const own = a.detach();
  const isEqual = logicalOr(eq(own, value), logicalAnd(ne(own, own), ne(value, value)));
  return max(where(isEqual, a, -Infinity));
}

function medianOfAll(op: string, a: Tensor, skipsNaN: boolean): Tensor {
  requireOrdered(op, a);
  if (a.count > 0)
    return scope(() => {
      const value = medians(op, flatten(a.detach()), 0, false, skipsNaN).values;
      return isRecording(a) ? sharedByEqual(a, value) : value;
    });
  if (!isFloat(a.dtype)) throw emptyReduction(op, a.shape);
  return full([], NaN, { dtype: a.dtype, device: a.device });
}

/**
 * Returns the median along `dim` and its position: of an even number of elements the lower of both in the middle, and
 * NaN where there is one. Without `dim`, returns the median of all elements; elements equal to it share its gradient.
 */
export function median(a: Tensor): Tensor;
export function median(a: Tensor, dim: number, keepDim?: boolean): Sorted;
export function median(a: Tensor, dim?: number, keepDim = false): Tensor | Sorted {
  return dim === undefined ? medianOfAll('median', a, false) : medians('median', a, dim, keepDim, false);
}

/** Returns the median as median() does, of the elements that are not NaN; NaN if all are. */
export function nanmedian(a: Tensor): Tensor;
export function nanmedian(a: Tensor, dim: number, keepDim?: boolean): Sorted;
export function nanmedian(a: Tensor, dim?: number, keepDim = false): Tensor | Sorted {
  return dim === undefined ? medianOfAll('nanmedian', a, true) : medians('nanmedian', a, dim, keepDim, true);
}
