// Distinct elements or slices. Their number depends on values, so the host waits for a device.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import type { UniqueOptions } from '../../core/op-options.ts';
import { checkedDim } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { ne, sub } from '../elementwise/binary.ts';
import { contiguous, requireTensor } from '../elementwise/convert.ts';
import { indexSelect } from '../indexing/lookup.ts';
import { truePositions } from '../indexing/positions.ts';
import { scatter } from '../indexing/scatter.ts';
import { any } from '../reduce/reduce.ts';
import { cat } from '../shape/join.ts';
import { movedim } from '../shape/moves.ts';
import { cumsum, sort } from '../shape/order.ts';
import { flatten, narrow, reshape } from '../shape/views.ts';

/** The results of unique() and uniqueConsecutive(). */
export interface Unique {
  /** The elements, each once. */
  readonly values: Tensor;
  /** int64: the position of each element's value; null unless it was requested. */
  readonly inverse: Tensor | null;
  /** int64: the number of occurrences of each value; null unless it was requested. */
  readonly counts: Tensor | null;
}

const uniqueOptions = optionChecks<UniqueOptions>({ returnInverse: flag, returnCounts: flag, dim: anything });

/** Returns the order that sorts the rows of a matrix, comparing elements from the left. */
function rowOrder(rows: Tensor): Tensor {
  const { device } = rows;
  const [count, width] = rows.shape as [number, number];
  let order = cumsum(full([count], 1, { dtype: 'int64', device }), 0);
  order = sub(order, 1);
  for (let col = width - 1; col >= 0; col--) {
    const column = reshape(narrow(rows, 1, col, 1), [count]);
    order = indexSelect(order, 0, sort(indexSelect(column, 0, order), 0).indices);
  }
  return order;
}

function distinct(op: string, a: Tensor, options: UniqueOptions, isSorted: boolean): Unique {
  requireTensor(op, a);
  checkOptions(op, options, uniqueOptions);
  const { returnInverse = false, returnCounts = false, dim } = options;
  const at = dim === undefined ? null : checkedDim(op, dim, a.rank);
  return scope(() => {
    const whole = a.detach();
    const front = at === null ? flatten(whole) : movedim(whole, at, 0);
    const count = front.shape[0]!;
    const width = at === null ? 1 : Math.max(0, front.count / Math.max(1, count));
    const rows = contiguous(reshape(front, [count, count === 0 ? 1 : width]));
    const order = isSorted ? rowOrder(rows) : null;
    const sorted = order === null ? rows : indexSelect(rows, 0, order);
    const { device } = a;
    const first = full([Math.min(1, count)], 1, { dtype: 'bool', device });
    const isNew =
      count < 2
        ? first
        : cat([first, any(ne(narrow(sorted, 0, 1, count - 1), narrow(sorted, 0, 0, count - 1)), 1)]);
    const starts = truePositions(isNew);
    const source = order === null ? starts : indexSelect(order, 0, starts);
    const picked = indexSelect(front, 0, source);
    const values = at === null ? picked : movedim(picked, 0, at);
    const ranks = sub(cumsum(isNew, 0), 1);
    const back = order === null ? ranks : scatter(ranks, 0, order, ranks);
    const inverse = at === null ? reshape(back, a.shape) : back;
    const ends = cat([starts, full([1], count, { dtype: 'int64', device })]);
    const found = starts.count;
    const counts = sub(narrow(ends, 0, Math.min(1, found), found), narrow(ends, 0, 0, found));
    return {
      values: contiguous(values),
      inverse: returnInverse ? inverse : null,
      counts: returnCounts ? counts : null,
    };
  });
}

/**
 * Returns the distinct elements in ascending order or, with `dim`, the distinct slices along it, ordered by their
 * elements. Each NaN is distinct. Waits for the elements.
 */
export const unique = (a: Tensor, options: UniqueOptions = {}): Unique =>
  distinct('unique', a, options, true);

/** Returns the elements, or slices along `dim`, that differ from the one before. Waits for the elements. */
export const uniqueConsecutive = (a: Tensor, options: UniqueOptions = {}): Unique =>
  distinct('uniqueConsecutive', a, options, false);
