// Writes to a copy of a tensor by flat positions, by a mask, and by slices that are combined.
import { checkFlag } from '../../checks/arguments.ts';
import { fewerThanMask } from '../../checks/array-errors.ts';
import { scope } from '../../core/context.ts';
import type { ScatterReduction } from '../../core/op-options.ts';
import { broadcastShapes, checkedDim, sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { lookupShapes, mixedDtypes, needsMask, needsRank, wrongCount } from '../../errors.ts';
import { sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clamp } from '../elementwise/clamp.ts';
import { clone, contiguous, requireOperand, requireTensor } from '../elementwise/convert.ts';
import { sum } from '../reduce/reduce.ts';
import { cumsum } from '../shape/order.ts';
import { expand, flatten, reshape } from '../shape/views.ts';
import { asRow, countedFromEnd } from './lookup.ts';
import { lookedUp, written } from './moves.ts';
import { type ScatterReduceOptions, scatterReduce } from './scatter-reduce.ts';

/**
 * Returns a copy of `a` with the elements of `source`, as many as `index` has, at positions that count `a` as if it
 * were flat; negative ones count from the end. With `accumulate` they are added; else the last one of several stays.
 */
export function put(a: Tensor, index: Tensor, source: Tensor, accumulate = false): Tensor {
  requireTensor('put', a);
  requireOperand('put', 'the index', index);
  requireOperand('put', 'the source', source);
  checkFlag('put', 'accumulate', accumulate);
  if (source.dtype !== a.dtype) throw mixedDtypes('put', a.dtype, source.dtype);
  if (source.count !== index.count) throw wrongCount('put: the source', source.shape, index.count);
  if (index.count === 0) return clone(a);
  return scope(() => {
    const positions = countedFromEnd('put', flatten(index), a.count);
    const sizes = { outer: 1, count: index.count, size: a.count, inner: 1, perElement: false };
    const [flat, values] = [flatten(a), contiguous(flatten(source))];
    const op = accumulate ? 'add' : 'replace';
    return reshape(written('put', op, flat, values, positions, flat.shape, sizes), a.shape);
  });
}

/**
 * Returns a copy of `a` in which the elements where `mask` (bool) is true are those of `source`, in order. `a` and the
 * mask are broadcast. Throws if the source has fewer elements than the mask has true ones, for which the host waits.
 */
export function maskedScatter(a: Tensor, mask: Tensor, source: Tensor): Tensor {
  const op = 'maskedScatter';
  requireTensor(op, a);
  requireOperand(op, 'the mask', mask);
  requireOperand(op, 'the source', source);
  if (mask.dtype !== 'bool') throw needsMask(op, mask.dtype);
  if (source.dtype !== a.dtype) throw mixedDtypes(op, a.dtype, source.dtype);
  const shape = broadcastShapes(op, a.shape, mask.shape);
  return scope(() => {
    const [whole, isChosen] = [expand(a, shape), expand(mask, shape)];
    const needed = sum(isChosen).item();
    if (needed > source.count) throw fewerThanMask(needed, source.count);
    if (source.count === 0) return clone(whole);
    const positions = clamp(sub(cumsum(flatten(isChosen), 0), 1), 0);
    const sizes = { outer: 1, count: positions.count, size: source.count, inner: 1, perElement: false };
    const values = lookedUp(op, contiguous(flatten(source)), positions, positions.shape, sizes);
    return where(isChosen, reshape(values, shape), whole);
  });
}

/**
 * Combines slice i of `source` with slice index[i] of a copy of `a`, along `dim`; `index` is [count]. `reduce` and the
 * options are those of scatterReduce() without 'sum', which is indexAdd().
 */
export function indexReduce(
  a: Tensor,
  dim: number,
  index: Tensor,
  source: Tensor,
  reduce: Exclude<ScatterReduction, 'sum'>,
  options: ScatterReduceOptions = {},
): Tensor {
  const op = 'indexReduce';
  requireTensor(op, a);
  requireOperand(op, 'the index', index);
  requireOperand(op, 'the source', source);
  if (index.rank > 1) throw needsRank(`${op}: index`, 1, index.shape);
  return scope(() => {
    const [whole, given, positions] = [asRow(a), asRow(source), asRow(index)];
    const at = checkedDim(op, dim, whole.rank);
    if (!sameShape(given.shape, whole.shape.with(at, positions.count)))
      throw lookupShapes(op, a.shape, source.shape);
    const along = reshape(
      positions,
      whole.shape.map((_, d) => (d === at ? positions.count : 1)),
    );
    return reshape(scatterReduce(whole, at, expand(along, given.shape), given, reduce, options), a.shape);
  });
}
