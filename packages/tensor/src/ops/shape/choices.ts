// All pairs, triples and so on of elements.

import { notTensors } from '../../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
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
  const positions = positionsOf(rows.flat(), [rows.length, length]);
  return scope(() => take(a, to(positions, a.device)));
}

/** Returns all rows of `length` ascending numbers below `count`, in lexicographic order. */
function chosen(count: number, length: number, isRepeated: boolean): number[][] {
  let rows: number[][] = Array.from({ length: count }, (_, i) => [i]);
  for (let i = 1; i < length; i++)
    rows = rows.flatMap((row) => {
      const first = row.at(-1)! + Number(!isRepeated);
      return Array.from({ length: Math.max(0, count - first) }, (_, n) => [...row, first + n]);
    });
  return rows;
}
