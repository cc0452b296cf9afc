// Sums of weights in bins between given or even edges.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, aTensor, flag } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { full, linspace } from '../../core/creation.ts';
import { isHalf } from '../../core/dtype.ts';
import type { HistogramOptions } from '../../core/op-options.ts';
import { sameShape } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, differentShapes, mixedDtypes, needsFloat, needsRank, shown } from '../../errors.ts';
import { div, ge, le, logicalAnd, minimum, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clone, requireFloat, to } from '../elementwise/convert.ts';
import { scatterAdd } from '../indexing/scatter.ts';
import { searchsorted } from '../order/search.ts';
import { max, min, sum } from '../reduce/reduce.ts';
import { flatten, narrow } from '../shape/views.ts';

const histogramOptions = optionChecks<HistogramOptions<Tensor>>({
  range: anything,
  weight: aTensor,
  density: flag,
});

/** Returns both ends of the bins: those of `range`, or the smallest and the largest element. */
function endsOf(values: Tensor, range: readonly [number, number] | undefined): readonly [number, number] {
  if (range !== undefined) {
    const fits = Array.isArray(range) && range.length === 2 && range.every(Number.isFinite);
    if (!fits || range[0] > range[1])
      throw badOption('histogram: range', 'two finite numbers, the lower one first', shown(range));
  }
  const [low, high] =
    range ?? (values.count === 0 ? [0, 1] : ([min(values).item(), max(values).item()] as const));
  if (!Number.isFinite(low) || !Number.isFinite(high))
    throw badOption('histogram', 'finite elements, or a range', `${low} and ${high}`);
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/**
 * Counts the elements of `a`, float32 or float64, in bins: `bins` of one width, or between the edges that a vector
 * has, in ascending order. A bin includes its left edge, and the last one its right edge, too; other elements and NaN
 * are left out. Returns the counts, or sums of weights, and the edges, in the dtype of `a` and without a gradient.
 * Without a range, the host waits for the least and the largest element.
 */
export function histogram(
  a: Tensor,
  bins: number | Tensor,
  options: HistogramOptions<Tensor> = {},
): [hist: Tensor, binEdges: Tensor] {
  const op = 'histogram';
  requireFloat(op, a);
  checkOptions(op, options, histogramOptions);
  const { dtype, device } = a;
  if (isHalf(dtype)) throw needsFloat('histogram of float32 or float64', dtype);
  const { range, weight, density = false } = options;
  if (bins instanceof Tensor) {
    if (bins.dtype !== dtype) throw mixedDtypes(`${op}: bins`, dtype, bins.dtype);
    if (bins.rank !== 1 || bins.count < 2)
      throw needsRank(`${op}: bins, of two edges or more`, 1, bins.shape);
    if (range !== undefined) throw badOption(`${op}: range with edges`, 'no such option', shown(range));
  } else if (!Number.isSafeInteger(bins) || bins < 1)
    throw badOption(`${op}: bins`, 'an integer ≥ 1, or a tensor of edges', shown(bins));
  if (weight !== undefined) {
    if (weight.dtype !== dtype) throw mixedDtypes(`${op}: weight`, dtype, weight.dtype);
    if (!sameShape(weight.shape, a.shape)) throw differentShapes(`${op}: weight`, weight.shape, a.shape);
  }
  return scope(() => {
    const values = flatten(a.detach());
    const edges =
      bins instanceof Tensor
        ? clone(bins.detach())
        : linspace(...endsOf(values, range), bins + 1, { dtype, device });
    const count = edges.count - 1;
    const isInside = logicalAnd(ge(values, narrow(edges, 0, 0, 1)), le(values, narrow(edges, 0, count, 1)));
    const position = minimum(sub(searchsorted(edges, values, { right: true }), 1), count - 1);
    const parts = weight === undefined ? to(isInside, dtype) : where(isInside, flatten(weight.detach()), 0);
    const zeros = full([count], 0, { dtype, device });
    const hist = scatterAdd(zeros, 0, where(isInside, position, 0), parts);
    if (!density) return [hist, edges];
    const widths = sub(narrow(edges, 0, 1, count), narrow(edges, 0, 0, count));
    return [div(hist, mul(widths, sum(hist))), edges];
  });
}
