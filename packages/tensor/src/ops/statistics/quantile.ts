// Quantiles, by sorting and interpolating between neighbours.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full } from '../../core/creation.ts';
import { isHalf } from '../../core/dtype.ts';
import type { QuantileOptions } from '../../core/op-options.ts';
import { checkedDim } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, emptyReduction, mixedDtypes, needsFloat, needsRank, shown } from '../../errors.ts';
import { eq, ge, le, logicalAnd, maximum, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireFloat, to } from '../elementwise/convert.ts';
import { lerp } from '../elementwise/functions/blends.ts';
import { ceil, floor, round } from '../elementwise/unary.ts';
import { gather } from '../indexing/lookup.ts';
import { all, sum } from '../reduce/reduce.ts';
import { movedim } from '../shape/moves.ts';
import { sort } from '../shape/order.ts';
import { flatten, reshape, squeeze, unsqueeze } from '../shape/views.ts';

const interpolations = ['linear', 'lower', 'higher', 'nearest', 'midpoint'] as const;
const quantileOptions = optionChecks<QuantileOptions>({
  interpolation: oneOf(...interpolations),
  keepDim: flag,
});

function check(op: string, a: Tensor, q: number | Tensor, options: QuantileOptions): void {
  requireFloat(op, a);
  checkOptions(op, options, quantileOptions);
  if (isHalf(a.dtype)) throw needsFloat(`${op} of float32 or float64`, a.dtype);
  if (q instanceof Tensor) {
    if (q.dtype !== a.dtype) throw mixedDtypes(op, a.dtype, q.dtype);
    if (q.rank > 1) throw needsRank(`${op}: q`, '0 or 1', q.shape);
  } else if (!(typeof q === 'number' && q >= 0 && q <= 1))
    throw badOption(`${op}: q`, 'a number from 0 to 1, or a tensor of such numbers', shown(q));
}

/** Returns quantiles of the rows of `a` [..., n] in a new last dimension. */
function ofRows(
  a: Tensor,
  q: Tensor,
  interpolation: QuantileOptions['interpolation'],
  skipsNaN: boolean,
): Tensor {
  const { dtype, device } = a;
  const { values } = sort(a);
  const size = a.shape.at(-1)!;
  const present = to(sum(eq(a.detach(), a.detach()), -1, true), dtype);
  const numbers = skipsNaN ? present : full(present.shape, size, { dtype, device });
  const exact = mul(maximum(sub(numbers, 1), 0), q);
  // The result of a row with a NaN is NaN, which is sorted last.
  const isWhole = skipsNaN ? null : eq(present, size);
  const position = isWhole === null ? exact : where(isWhole, exact, size - 1);
  const at = (positions: Tensor): Tensor => gather(values, -1, to(positions, 'int64'));
  if (interpolation === 'lower') return at(floor(position));
  if (interpolation === 'higher') return at(ceil(position));
  if (interpolation === 'nearest') return at(round(position));
  const share = interpolation === 'midpoint' ? 0.5 : sub(position, floor(position));
  return lerp(at(floor(position)), at(ceil(position)), share);
}

function quantiles(
  op: string,
  a: Tensor,
  q: number | Tensor,
  dim: number | undefined,
  options: QuantileOptions,
  skipsNaN: boolean,
): Tensor {
  check(op, a, q, options);
  const at = dim === undefined ? 0 : checkedDim(op, dim, Math.max(1, a.rank));
  if (a.count === 0) throw emptyReduction(op, a.shape);
  const { interpolation = 'linear', keepDim = false } = options;
  const { dtype, device } = a;
  return scope(() => {
    const wanted = typeof q === 'number' ? full([1], q, { dtype, device }) : reshape(q.detach(), [q.count]);
    if (typeof q !== 'number' && all(logicalAnd(ge(wanted, 0), le(wanted, 1))).item() === 0)
      throw badOption(`${op}: q`, 'numbers from 0 to 1', 'others');
    const isFlat = dim === undefined || a.rank === 0;
    const rows = isFlat ? flatten(a) : movedim(a, at, -1);
    const found = ofRows(rows, wanted, interpolation, skipsNaN);
    const front = movedim(found, -1, 0);
    const isOne = typeof q === 'number' || q.rank === 0;
    const plain = isOne ? squeeze(front, 0) : front;
    if (!keepDim) return plain;
    const lead = isOne ? [] : [wanted.count];
    if (isFlat) return reshape(plain, [...lead, ...a.shape.map(() => 1)]);
    return unsqueeze(plain, at + lead.length);
  });
}

/**
 * Returns the quantiles `q` along `dim`, or of all elements: q is a number from 0 to 1, or a tensor [count] or without
 * dimensions of the dtype of `a`, float32 or float64. Several quantiles are a new first dimension. A row with a NaN
 * gives NaN. Waits for a tensor q, which the host checks.
 */
export const quantile = (
  a: Tensor,
  q: number | Tensor,
  dim?: number,
  options: QuantileOptions = {},
): Tensor => quantiles('quantile', a, q, dim, options, false);

/** Returns the same as quantile(), of the elements that are not NaN; NaN if all are. */
export const nanquantile = (
  a: Tensor,
  q: number | Tensor,
  dim?: number,
  options: QuantileOptions = {},
): Tensor => quantiles('nanquantile', a, q, dim, options, true);
