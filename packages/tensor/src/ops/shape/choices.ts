// All pairs, triples and so on of elements.

import { notTensors } from '../../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { hostNumbers } from '../../core/host-numbers.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import { badOption, needsRank, shown } from '../../errors.ts';
import { meshgrid } from '../creation/meshgrid.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { take } from '../indexing/lookup.ts';
import { positionsOf } from '../indexing/positions.ts';
import { stack } from './join.ts';
import { flatten, view } from './views.ts';

/**
 * Returns all combinations of an element of each vector, as rows [count, tensors]; a single vector as it is. All have
 * one dtype.
 */
export function cartesianProd(...tensors: readonly Tensor[]): Tensor {
  const op = 'cartesianProd';
  if (!tensors.every((tensor) => tensor instanceof Tensor)) throw notTensors(op, tensors);
  if (tensors.length === 0) throw badOption(`${op}: tensors`, 'at least one', 'none');
  for (const { rank, shape } of tensors) if (rank !== 1) throw needsRank(op, 1, shape);
  if (tensors.length === 1) return view(tensors[0]!, tensors[0]!.shape);
  return scope(() =>
    stack(
      meshgrid(tensors).map((grid) => flatten(grid)),
      1,
    ),
  );
}

/** Options of combinations(). */
export interface CombinationOptions {
  /** Whether an element may occur several times in a row. Default false. */
  readonly withReplacement?: boolean;
}

const combinationOptions = optionChecks<CombinationOptions>({ withReplacement: flag });

/** Returns the combinations of `length` elements of a vector, in the order of their positions: rows [count, length]. */
export function combinations(a: Tensor, length = 2, options: CombinationOptions = {}): Tensor {
  const op = 'combinations';
  requireTensor(op, a);
  checkOptions(op, options, combinationOptions);
  if (a.rank !== 1) throw needsRank(op, 1, a.shape);
  if (!Number.isSafeInteger(length) || length < 0)
    throw badOption(`${op}: length`, 'an integer ≥ 0', shown(length));
  if (length === 0) return empty(a.dtype, [0], a.device);
  const rows = chosen(a.count, length, options.withReplacement ?? false);
  const positions = positionsOf(rows, [rows.length / length, length]);
  return scope(() => take(a, to(positions, a.device)));
}

/** Returns the number of ways to choose `some` of `all` items; beyond 2^100 any larger number. */
function choices(all: number, some: number): number {
  if (some > all) return 0;
  const fewer = Math.min(some, all - some);
  let ways = 1;
  for (let i = 1; i <= fewer && ways < 2 ** 100; i++) ways = (ways * (all - fewer + i)) / i;
  return ways;
}

/**
 * Returns all rows of `length` ascending numbers below `count`, in lexicographic order, one behind the other. Throws
 * ERR_TENSOR_MEMORY if there is no memory for them.
 */
function chosen(count: number, length: number, isRepeated: boolean): Float64Array {
  const apart = isRepeated ? 0 : 1;
  const rows = hostNumbers(choices(isRepeated ? count + length - 1 : count, length) * length);
  /** Writes the least numbers from place i of the row at `row` on, of which the first is `from`. */
  const write = (row: number, i: number, from: number): void => {
    for (let j = i; j < length; j++) rows[row + j] = from + apart * (j - i);
  };
  if (rows.length > 0) write(0, 0, 0);
  for (let row = length; row < rows.length; row += length) {
    rows.copyWithin(row, row - length, row);
    let i = length - 1;
    // The last number that is not the largest of its place grows.
    while (rows[row + i] === count - 1 - apart * (length - 1 - i)) i--;
    write(row, i, rows[row + i]! + 1);
  }
  return rows;
}
