// Distances between vectors, and vectors that are scaled to a length. All use norm(), so its rules hold for gradients.

import { checkNumber } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aNumber, checkValue, integer, nonNegative, positive } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isHalf } from '../../core/dtype.ts';
import type { CdistOptions, NormalizeOptions } from '../../core/op-options.ts';
import { checkedDim } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { joinShapes, mixedDtypes, needsFloat, needsRank } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { add, div, gt, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireFloat, requireTensor } from '../elementwise/convert.ts';
import { indexSelect } from '../indexing/lookup.ts';
import { triuIndices } from '../matrix/diagonals.ts';
import { norm } from '../reduce/vector-norm.ts';
import { select, unsqueeze } from '../shape/views.ts';

const anOrder = {
  expected: 'a number ≥ 0, or Infinity',
  fits: (value: unknown): boolean => typeof value === 'number' && value >= 0,
};
const cdistOptions = optionChecks<CdistOptions>({ p: anOrder });

/**
 * Returns the distances between the rows of two matrices, [..., m, width] and [..., n, width]: [..., m, n]. Leading
 * dimensions are broadcast. Both are float32 or float64.
 */
export function cdist(a: Tensor, b: Tensor, options: CdistOptions = {}): Tensor {
  const raised = recast('float32', [a, b], (x, y) => cdist(x!, y!, options));
  if (raised) return raised;
  for (const tensor of [a, b]) {
    requireFloat('cdist', tensor);
    if (isHalf(tensor.dtype)) throw needsFloat('cdist of float32 or float64', tensor.dtype);
    if (tensor.rank < 2) throw needsRank('cdist', 'at least 2', tensor.shape);
  }
  checkOptions('cdist', options, cdistOptions);
  if (a.dtype !== b.dtype) throw mixedDtypes('cdist', a.dtype, b.dtype);
  if (a.shape.at(-1) !== b.shape.at(-1)) throw joinShapes('cdist', a.shape, b.shape);
  return scope(() => norm(sub(unsqueeze(a, -2), unsqueeze(b, -3)), -1, options));
}

/** Returns the distances between all pairs of rows of a matrix, in the order of the pairs: [n · (n − 1) ÷ 2]. */
export function pdist(a: Tensor, p = 2): Tensor {
  const raised = recast('float32', [a], (wide) => pdist(wide!, p));
  if (raised) return raised;
  requireFloat('pdist', a);
  if (isHalf(a.dtype)) throw needsFloat('pdist of float32 or float64', a.dtype);
  if (a.rank !== 2) throw needsRank('pdist', 2, a.shape);
  checkValue('pdist: p', p, anOrder);
  return scope(() => {
    const rows = a.shape[0]!;
    const pairs = triuIndices(rows, rows, 1, { device: a.device });
    const row = (side: number): Tensor => indexSelect(a, 0, select(pairs, 0, side));
    return norm(sub(row(0), row(1)), -1, { p });
  });
}

/** Returns the norm of the difference of two tensors, which are broadcast: a number without dimensions. */
export function dist(a: Tensor, b: Tensor, p = 2): Tensor {
  requireTensor('dist', a);
  requireTensor('dist', b);
  checkNumber('dist', 'p', p);
  return scope(() => {
    const distance = sub(a, b);
    requireFloat('dist', distance);
    return norm(distance, undefined, { p });
  });
}

const normalizeOptions = optionChecks<NormalizeOptions>({ p: aNumber, dim: integer, eps: nonNegative });

/** Divides vectors along a dimension by their norm, or by `eps` if that is larger. */
export function normalize(a: Tensor, options: NormalizeOptions = {}): Tensor {
  requireFloat('normalize', a);
  checkOptions('normalize', options, normalizeOptions);
  const { p = 2, dim = 1, eps = 1e-12 } = options;
  return scope(() => div(a, clamp(norm(a, dim, { p, keepDim: true }), eps)));
}

/** Scales the slices along `dim` whose norm of order `p` is larger than `most` down to that norm. */
export function renorm(a: Tensor, p: number, dim: number, most: number): Tensor {
  requireFloat('renorm', a);
  checkValue('renorm: p', p, positive);
  checkValue('renorm: the largest norm', most, nonNegative);
  if (a.rank < 2) throw needsRank('renorm', 'at least 2', a.shape);
  const at = checkedDim('renorm', dim, a.rank);
  return scope(() => {
    const others = a.shape.map((_, d) => d).filter((d) => d !== at);
    const length = norm(a, others, { p, keepDim: true });
    return mul(a, where(gt(length, most), div(most, add(length, 1e-7)), 1));
  });
}
