// Repeats a whole tensor, or each of its elements or slices.

import { checkInteger } from '../../checks/arguments.ts';
import { negativeRepeats } from '../../checks/array-errors.ts';
import { scope } from '../../core/context.ts';
import { checkedDim, type Shape } from '../../core/shape.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import { lookupShapes, needsIndex, needsRank } from '../../errors.ts';
import { clone, requireTensor, to } from '../elementwise/convert.ts';
import { indexSelect } from '../indexing/lookup.ts';
import { repeat, repetitions } from './rearrange.ts';
import { expand, flatten, reshape, unsqueeze } from './views.ts';

/**
 * Repeats the tensor `counts[d]` times along dimension d, counted from the last; dimensions without a count are not
 * repeated, and more counts than dimensions add dimensions in front. Returns a copy.
 */
export function tile(a: Tensor, counts: Shape): Tensor {
  requireTensor('tile', a);
  const times = repetitions('tile', a, counts);
  return repeat(a, [...new Array<number>(Math.max(0, a.rank - times.length)).fill(1), ...times]);
}

/**
 * Repeats each slice along `dim` `repeats` times, which is a number, or an int32 or int64 tensor [size] or [1] with a
 * number for each slice. Without `dim`, repeats the elements of the flattened tensor. Returns a copy. Waits for a
 * tensor.
 */
export function repeatInterleave(a: Tensor, repeats: number | Tensor, dim?: number): Tensor {
  const op = 'repeatInterleave';
  requireTensor(op, a);
  if (dim === undefined) return scope(() => repeatInterleave(flatten(a), repeats, 0));
  const at = checkedDim(op, dim, a.rank);
  const size = a.shape[at]!;
  if (repeats instanceof Tensor) {
    if (repeats.dtype !== 'int32' && repeats.dtype !== 'int64') throw needsIndex(op, repeats.dtype);
    if (repeats.rank > 1) throw needsRank(`${op}: repeats`, '0 or 1', repeats.shape);
    if (repeats.count !== 1 && repeats.count !== size) throw lookupShapes(op, a.shape, repeats.shape);
    const counts = [repeats.toArray() as number | number[]].flat();
    if (counts.length === 1) return times(a, counts[0]!, at);
    return scope(() => indexSelect(a, at, to(repeated(counts), a.device)));
  }
  checkInteger(op, 'repeats', repeats);
  return times(a, repeats, at);
}

function times(a: Tensor, count: number, at: number): Tensor {
  if (count < 0) throw negativeRepeats(count);
  return scope(() => {
    const apart = unsqueeze(a, at + 1);
    const many = clone(expand(apart, apart.shape.with(at + 1, count)));
    return reshape(many, a.shape.with(at, a.shape[at]! * count));
  });
}

/** Returns each index as many times as its count says. */
function repeated(counts: readonly number[]): Tensor {
  for (const count of counts) if (count < 0) throw negativeRepeats(count);
  const out = empty('int64', [counts.reduce((total, count) => total + count, 0)]);
  const found = out.memory.host as BigInt64Array;
  let at = 0;
  for (const [i, count] of counts.entries()) {
    found.fill(BigInt(i), at, at + count);
    at += count;
  }
  return out;
}
