// Sums, means and maxima of rows of a table.
import { badBags, badBagWeights } from '../../checks/array-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, integer, oneOf, tensorOrNull } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { arange, full, ones, zeros } from '../../core/creation.ts';
import { sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, mixedDtypes, needsIndex, needsRank, shown } from '../../errors.ts';
import { div, eq, logicalAnd, logicalOr, maximum, mul, ne, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireFloat, requireOperand, to } from '../elementwise/convert.ts';
import { searchsorted } from '../order/search.ts';
import { expand, flatten, narrow, reshape, unsqueeze } from '../shape/views.ts';
import { indexAdd } from './index-write.ts';
import { embedding, gather } from './lookup.ts';
import { type RowRules, rowRuleChecks, shortenRows } from './row-rules.ts';
import { scatterReduce } from './scatter-reduce.ts';

/** Options of embeddingBag(). */
export interface EmbeddingBagOptions extends RowRules {
  /** Reduction over the rows of a bag. Default 'mean'. */
  readonly mode?: 'sum' | 'mean' | 'max';
  /** A factor for each row, in the shape of the index and the dtype of the table; mode 'sum' only. */
  readonly perSampleWeights?: Tensor | null;
  /** Whether the last offset is the end of the last bag instead of the start of another one. Default false. */
  readonly includeLastOffset?: boolean;
  /** The row that does not count and gets no gradient; negative ones count from the end. Default: none. */
  readonly paddingIdx?: number | null;
}

export const embeddingBagChecks = {
  mode: oneOf('sum', 'mean', 'max'),
  includeLastOffset: flag,
  ...rowRuleChecks,
  paddingIdx: {
    expected: 'an integer or null',
    fits: (value: unknown): boolean => value === null || integer.fits(value),
  },
};
const embeddingBagOptions = optionChecks<EmbeddingBagOptions>({
  ...embeddingBagChecks,
  perSampleWeights: tensorOrNull,
});

const op = 'embeddingBag';

/** The bag of each element of a flat index, and the number of bags. */
interface Bags {
  readonly ids: Tensor;
  readonly count: number;
}

/** Throws unless offsets begin with 0, do not decrease, and are at most `end`; lengths of bags are no offsets. */
function checkOffsets(offsets: BigInt64Array, end: bigint): void {
  const what = `${op}: offsets`;
  let last = 0n;
  for (const [i, offset] of offsets.entries()) {
    if (i === 0 && offset !== 0n) throw badOption(what, 'a first offset of 0', `${offset}`);
    if (offset < last) throw badOption(what, 'offsets that do not decrease', `${offset} after ${last}`);
    last = offset;
  }
  if (last > end) throw badOption(what, `offsets up to ${end}`, `${last}`);
}

function bagsOf(index: Tensor, offsets: Tensor | null, includesLast: boolean): Bags {
  const { device } = index;
  if (index.rank === 2) {
    if (offsets !== null) throw badBags('no offsets for an index of two dimensions', index.shape);
    const [count, size] = index.shape as [number, number];
    const rows = unsqueeze(arange(0, count, 1, { dtype: 'int64', device }), 1);
    return { ids: flatten(expand(rows, [count, size])), count };
  }
  if (index.rank !== 1) throw needsRank(`${op}: index`, '1 or 2', index.shape);
  if (offsets === null) throw badBags('offsets for an index of one dimension', index.shape);
  if (offsets.dtype !== 'int32' && offsets.dtype !== 'int64') throw needsIndex(op, offsets.dtype);
  if (offsets.rank !== 1) throw needsRank(`${op}: offsets`, 1, offsets.shape);
  if (includesLast && offsets.count === 0) throw badBags('an offset at least for the end', offsets.shape);
  const count = includesLast ? offsets.count - 1 : offsets.count;
  const starts = to(offsets, 'int64');
  if (device === 'cpu') checkOffsets(starts.dataSync() as BigInt64Array, BigInt(index.count));
  const positions = arange(0, index.count, 1, { dtype: 'int64', device });
  return { ids: sub(searchsorted(narrow(starts, 0, 0, count), positions, { right: true }), 1), count };
}

/** Returns the largest element of each bag, 0 for bags without rows. Of equal elements the first gets the gradient. */
function largest(rows: Tensor, { ids, count }: Bags, isCounted: Tensor | null): Tensor {
  const [size, width] = rows.shape as [number, number];
  const { dtype, device } = rows;
  // A sum of no rows is 0 and has the gradient 0, so backward works for an empty batch, too.
  if (size === 0) return indexAdd(zeros([count, width], { dtype, device }), 0, ids, rows);
  const [chosen, isFilled] = noGrad(() => {
    const index = expand(unsqueeze(ids, 1), [size, width]);
    const fixed = rows.detach();
    const values = isCounted === null ? fixed : where(unsqueeze(isCounted, 1), fixed, -Infinity);
    const without = { includeSelf: false };
    const most = scatterReduce(zeros([count, width], { dtype, device }), 0, index, values, 'amax', without);
    const own = gather(most, 0, index);
    const isMost = logicalOr(eq(values, own), logicalAnd(ne(values, values), ne(own, own)));
    const isOpen = isCounted === null ? isMost : logicalAnd(isMost, unsqueeze(isCounted, 1));
    const positions = expand(unsqueeze(arange(0, size, 1, { dtype: 'int64', device }), 1), [size, width]);
    const none = full([count, width], size, { dtype: 'int64', device });
    const first = scatterReduce(none, 0, index, where(isOpen, positions, size), 'amin');
    const isFound = ne(first, size);
    return [where(isFound, first, 0), isFound];
  });
  return where(isFilled!, gather(rows, 0, chosen!), 0);
}

/**
 * Computes the sum, mean or maximum of rows of `weight` [rows, width] for each bag of indices: the rows of an index
 * [bags, size], or the parts of an index [count] that begin at `offsets` [bags]. Returns [bags, width]; 0 for a bag
 * without rows. Offsets begin with 0 and do not decrease; on a device they are not checked.
 */
export function embeddingBag(
  index: Tensor,
  weight: Tensor,
  offsets: Tensor | null = null,
  options: EmbeddingBagOptions = {},
): Tensor {
  requireOperand(op, 'the index', index);
  requireFloat(op, weight);
  if (offsets !== null) requireOperand(op, 'offsets', offsets);
  checkOptions(op, options, embeddingBagOptions);
  if (weight.rank !== 2) throw needsRank(`${op}: weight`, 2, weight.shape);
  if (index.dtype !== 'int32' && index.dtype !== 'int64') throw needsIndex(op, index.dtype);
  const { mode = 'mean', perSampleWeights = null, includeLastOffset = false, paddingIdx = null } = options;
  const { maxNorm = null, normType } = options;
  const [count, width] = weight.shape as [number, number];
  if (paddingIdx !== null && (paddingIdx < -count || paddingIdx >= count))
    throw badOption(`${op}: paddingIdx`, `an index from ${-count} to ${count - 1}`, shown(paddingIdx));
  if (perSampleWeights !== null) {
    if (mode !== 'sum')
      throw badOption(`${op}: perSampleWeights with mode '${mode}'`, 'no such option', 'a tensor');
    if (!sameShape(perSampleWeights.shape, index.shape))
      throw badBagWeights(perSampleWeights.shape, index.shape);
    if (perSampleWeights.dtype !== weight.dtype)
      throw mixedDtypes(`${op}: perSampleWeights`, weight.dtype, perSampleWeights.dtype);
  }
  return scope(() => {
    const bags = bagsOf(index, offsets, includeLastOffset);
    const flat = flatten(index);
    if (maxNorm !== null) shortenRows(flat, weight, maxNorm, normType);
    const rows = embedding(flat, weight);
    const isCounted = paddingIdx === null ? null : ne(flat, paddingIdx < 0 ? paddingIdx + count : paddingIdx);
    if (mode === 'max') return largest(rows, bags, isCounted);
    const { dtype, device } = weight;
    const weighed = perSampleWeights === null ? rows : mul(rows, reshape(perSampleWeights, [flat.count, 1]));
    const counted = isCounted === null ? weighed : where(unsqueeze(isCounted, 1), weighed, 0);
    const sums = indexAdd(zeros([bags.count, width], { dtype, device }), 0, bags.ids, counted);
    if (mode === 'sum') return sums;
    const each = isCounted === null ? ones([flat.count], { dtype, device }) : to(isCounted, dtype);
    const sizes = noGrad(() => indexAdd(zeros([bags.count], { dtype, device }), 0, bags.ids, each));
    return div(sums, unsqueeze(maximum(sizes, 1), 1));
  });
}
