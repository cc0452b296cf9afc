// Running extremes, products and logarithms of sums along a dimension. They combine each element with the one
// 1, 2, 4, … positions before it, so that log₂(size) steps over all elements are enough, on every device.

import { scope } from '../../core/context.ts';
import { arange } from '../../core/creation.ts';
import { isFloat } from '../../core/dtype.ts';
import { checkedDim } from '../../core/shape.ts';
import type { Sorted, Tensor } from '../../core/tensor.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, eq, gt, logicalAnd, logicalOr, lt, maximum, mul, ne, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clone, requireFloat, requireTensor, to } from '../elementwise/convert.ts';
import { exp, log } from '../elementwise/unary.ts';
import { gather } from '../indexing/lookup.ts';
import { cat } from '../shape/join.ts';
import { ofOne } from '../shape/order.ts';
import { expand, narrow, reshape } from '../shape/views.ts';

/** Returns the int64 position of each element of `a` along `dim`. */
export function positionsAlong(a: Tensor, dim: number): Tensor {
  const counted = arange(a.shape[dim]!, undefined, 1, { dtype: 'int64', device: a.device });
  const along = a.shape.map((size, d) => (d === dim ? size : 1));
  return expand(reshape(counted, along), a.shape);
}

/**
 * Combines along `dim`: `combine` gets the parts with later and with earlier elements, and returns the later part.
 * The results are new tensors.
 */
function scanned(
  a: readonly Tensor[],
  dim: number,
  combine: (later: readonly Tensor[], earlier: readonly Tensor[]) => readonly Tensor[],
): readonly Tensor[] {
  const size = a[0]!.shape[dim]!;
  if (size < 2) return a.map(clone); // nothing is combined, and results have memory of their own
  let all = a;
  for (let step = 1; step < size; step *= 2) {
    const part = (start: number): Tensor[] => all.map((x) => narrow(x, dim, start, size - step));
    const later = combine(part(step), part(0));
    all = all.map((x, i) => cat([narrow(x, dim, 0, step), later[i]!], dim));
  }
  return all;
}

/** Returns running maxima or minima and the positions of the last ones. The gradient goes to these elements. */
function extremes(op: 'cummax' | 'cummin', a: Tensor, dim: number): Sorted {
  requireTensor(op, a);
  if (a.rank === 0) return ofOne(a, (row) => extremes(op, row, dim));
  const at = checkedDim(op, dim, a.rank);
  return scope(() => {
    const values = a.detach();
    const start = positionsAlong(a, at);
    const [, positions] = scanned([values, start], at, ([x, i], [y, j]) => {
      const isLess = op === 'cummax' ? lt(x!, y!) : gt(x!, y!);
      // A NaN stays, and a later NaN replaces it.
      const isMissing = isFloat(a.dtype) ? logicalAnd(eq(x!, x!), ne(y!, y!)) : isLess;
      const takesEarlier = logicalOr(isLess, isMissing);
      return [where(takesEarlier, y!, x!), where(takesEarlier, j!, i!)];
    });
    return { values: gather(a, at, positions!), indices: positions! };
  });
}

/** Returns the maxima of all elements up to each along `dim`, and the position of the last one. NaN is the largest. */
export const cummax = (a: Tensor, dim: number): Sorted => extremes('cummax', a, dim);
/** Returns the minima of all elements up to each along `dim`, and the position of the last one. NaN is the least. */
export const cummin = (a: Tensor, dim: number): Sorted => extremes('cummin', a, dim);

/** Computes running products along `dim`. Integers and bool are multiplied in int64. */
export function cumprod(a: Tensor, dim: number): Tensor {
  requireTensor('cumprod', a);
  const raised = recast('float32', [a], (wide) => cumprod(wide!, dim));
  if (raised) return raised;
  if (a.rank === 0) return scope(() => reshape(cumprod(reshape(a, [1]), dim), []));
  const at = checkedDim('cumprod', dim, a.rank);
  return scope(() => {
    const wide = isFloat(a.dtype) ? a : to(a, 'int64');
    return scanned([wide], at, ([later], [earlier]) => [mul(later!, earlier!)])[0]!;
  });
}

/** Computes log Σ exp of all elements up to each along `dim`, without overflow. */
export function logcumsumexp(a: Tensor, dim: number): Tensor {
  requireFloat('logcumsumexp', a);
  if (a.rank === 0) return scope(() => reshape(logcumsumexp(reshape(a, [1]), dim), []));
  const at = checkedDim('logcumsumexp', dim, a.rank);
  return scope(() => {
    const combine = (x: Tensor, y: Tensor): Tensor => {
      const top = maximum(x.detach(), y.detach());
      // An infinite maximum would give NaN, so any finite number is used instead.
      const shift = where(eq(sub(top, top), 0), top, 0);
      return add(log(add(exp(sub(x, shift)), exp(sub(y, shift)))), shift);
    };
    return scanned([a], at, ([later], [earlier]) => [combine(later!, earlier!)])[0]!;
  });
}
