// Finds the positions of values in sorted sequences, by binary search over all values at once. Nothing waits for a
// device.

import { notAnOperandOf } from '../../checks/argument-errors.ts';
import { checkFits } from '../../checks/arguments.ts';
import { sorterShape } from '../../checks/array-errors.ts';
import { needsNumbers } from '../../checks/op-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aTensor, flag, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { isFloat, resultType } from '../../core/dtype.ts';
import type { BucketizeOptions } from '../../core/op-options.ts';
import { sameShape } from '../../core/shape.ts';
import { type Operand, Tensor } from '../../core/tensor.ts';
import { badOption, lookupShapes, needsRank } from '../../errors.ts';
import { add, le, logicalAnd, logicalOr, lt, minimum, ne, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { contiguous, requireTensor, to } from '../elementwise/convert.ts';
import { gather } from '../indexing/lookup.ts';
import { lookedUp } from '../indexing/moves.ts';
import { jointDevice } from '../joint-device.ts';

/** Options of searchsorted(). */
export interface SearchOptions extends BucketizeOptions {
  /** 'right' is another way to say `right`. */
  readonly side?: 'left' | 'right';
  /** int64 indices, as sort() returns them, that bring the sequence into order. */
  readonly sorter?: Tensor;
}

const bucketizeOptions = optionChecks<BucketizeOptions>({ right: flag, outInt32: flag });
const searchOptions = optionChecks<SearchOptions>({
  right: flag,
  outInt32: flag,
  side: oneOf('left', 'right'),
  sorter: aTensor,
});

/** Returns the elements of the rows of `sorted`, which is dense, at int64 positions. A single row serves all values. */
function rowsAt(sorted: Tensor, positions: Tensor): Tensor {
  const size = sorted.shape.at(-1)!;
  const outer = sorted.rank === 1 ? 1 : sorted.count / size;
  const sizes = { outer, count: positions.count / outer, size, inner: 1, perElement: true };
  return lookedUp('searchsorted', sorted, positions, positions.shape, sizes);
}

/**
 * Returns for each value the number of elements that are before it: less than it or, with `isRight`, not greater. NaN
 * counts as the largest, also beside another NaN. Tensors have one dtype and require no gradient.
 */
export function positionsIn(sorted: Tensor, values: Tensor, isRight: boolean): Tensor {
  const size = sorted.shape.at(-1)!;
  const { device } = values;
  let positions = full(values.shape, 0, { dtype: 'int64', device });
  if (size === 0 || values.count === 0) return positions;
  const dense = contiguous(sorted);
  const isMissing = isFloat(values.dtype) ? ne(values, values) : null;
  const isBefore = (element: Tensor): Tensor => {
    const test = isRight ? le(element, values) : lt(element, values);
    return isMissing === null ? test : logicalOr(test, isMissing);
  };
  for (let step = 2 ** Math.floor(Math.log2(size)); step >= 1; step /= 2) {
    const next = add(positions, step);
    const element = rowsAt(dense, sub(minimum(next, size), 1));
    positions = where(logicalAnd(le(next, size), isBefore(element)), next, positions);
  }
  return positions;
}

function searched(op: string, sorted: Tensor, values: Operand, isRight: boolean, isNarrow: boolean): Tensor {
  if (typeof values === 'number') {
    if (sorted.rank !== 1) throw needsRank(`${op}: the sorted sequence beside a number`, 1, sorted.shape);
  } else if (!(values instanceof Tensor)) throw notAnOperandOf(op, values);
  else {
    const isBeside =
      sorted.rank === values.rank && sameShape(sorted.shape.slice(0, -1), values.shape.slice(0, -1));
    if (sorted.rank !== 1 && !isBeside) throw lookupShapes(op, sorted.shape, values.shape);
  }
  const dtype = resultType(sorted, values);
  if (dtype === 'bool') throw needsNumbers(op);
  if (typeof values === 'number') checkFits(op, values, dtype);
  const device = jointDevice(op, sorted, values);
  return scope(() => {
    const wanted =
      typeof values === 'number' ? full([], values, { dtype, device }) : to(values.detach(), dtype);
    const positions = positionsIn(to(sorted.detach(), dtype), contiguous(wanted), isRight);
    return isNarrow ? to(positions, 'int32') : positions;
  });
}

/**
 * Returns the positions at which values can be inserted into a sorted sequence so that it stays sorted: int64, the
 * first such position or, with `right`, the last. `sorted` is [n], or [..., n] beside values [..., m] with equal
 * leading sizes. They are compared in their joint dtype. The order is not checked.
 */
export function searchsorted(sorted: Tensor, values: Operand, options: SearchOptions = {}): Tensor {
  const op = 'searchsorted';
  requireTensor(op, sorted);
  checkOptions(op, options, searchOptions);
  if (sorted.rank === 0) throw needsRank(`${op}: the sorted sequence`, 'at least 1', sorted.shape);
  const { right = false, side, sorter, outInt32 = false } = options;
  if (right && side === 'left') throw badOption(`${op}: side`, "'right' beside right: true", "'left'");
  const isRight = side === undefined ? right : side === 'right';
  if (sorter === undefined) return searched(op, sorted, values, isRight, outInt32);
  if (!sameShape(sorter.shape, sorted.shape)) throw sorterShape(sorted.shape, sorter.shape);
  return scope(() => searched(op, gather(sorted.detach(), -1, sorter), values, isRight, outInt32));
}

/**
 * Returns the index of the interval in which each value lies: int64, the number of `boundaries` [n], which are sorted,
 * that are less than the value or, with `right`, not greater.
 */
export function bucketize(values: Operand, boundaries: Tensor, options: BucketizeOptions = {}): Tensor {
  const op = 'bucketize';
  requireTensor(op, boundaries);
  checkOptions(op, options, bucketizeOptions);
  if (boundaries.rank !== 1) throw needsRank(`${op}: boundaries`, 1, boundaries.shape);
  const { right = false, outInt32 = false } = options;
  return searched(op, boundaries, values, right, outInt32);
}
