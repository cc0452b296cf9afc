// Estimates of derivatives of functions that are given at points.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { Dims } from '../../core/op-options.ts';
import { checkedDims } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, needsRank, shown } from '../../errors.ts';
import { add, div, mul, sub } from '../elementwise/binary.ts';
import { requireNumbers, requireTensor, to } from '../elementwise/convert.ts';
import { cat } from '../shape/join.ts';
import { narrow, reshape } from '../shape/views.ts';

/** Options of gradient(). */
export interface GradientOptions {
  /**
   * The distance of neighbours: a number for all dimensions, or a list with a number for each, or with a tensor
   * [size] of the positions of the points. Default 1.
   */
  readonly spacing?: number | readonly (number | Tensor)[];
  /** The order of accuracy of the estimate at both ends: 1 (default) or 2. */
  readonly edgeOrder?: 1 | 2;
}

const gradientOptions = optionChecks<GradientOptions>({
  spacing: anything,
  edgeOrder: { expected: '1 or 2', fits: (value) => value === 1 || value === 2 },
});

/** Returns the distance along each of `dims`, checked. */
function spacings(a: Tensor, dims: readonly number[], spacing: unknown): readonly (number | Tensor)[] {
  const all = typeof spacing === 'number' ? dims.map(() => spacing) : spacing;
  const fits =
    Array.isArray(all) &&
    all.length === dims.length &&
    all.every((each, i) =>
      each instanceof Tensor
        ? each.rank === 1 && each.count === a.shape[dims[i]!] && each.dtype !== 'bool'
        : Number.isFinite(each) && each !== 0,
    );
  if (fits) return all as (number | Tensor)[];
  const expected = `a number, or a list with a number or the positions of all points for each of ${dims.length} dimensions`;
  throw badOption('gradient: spacing', expected, shown(spacing));
}

/** Returns the elements from `start` on, `count` of them. */
type Take = (start: number, count: number) => Tensor;

/** Slopes at distance `h` of all neighbours: second order inside, `edgeOrder` at the ends. */
function even(take: Take, size: number, h: number, edgeOrder: 1 | 2): Tensor[] {
  const inside = div(sub(take(2, size - 2), take(0, size - 2)), 2 * h);
  const end = (at: number, step: 1 | -1): Tensor => {
    const [first, second] = [take(at, 1), take(at + step, 1)];
    if (edgeOrder === 1) return div(sub(second, first), step * h);
    const third = take(at + 2 * step, 1);
    return div(sub(sub(mul(second, 2), mul(first, 1.5)), mul(third, 0.5)), step * h);
  };
  return [end(0, 1), inside, end(size - 1, -1)];
}

/**
 * Computes slopes at unevenly spaced points, by the parabola through three points; at the ends by a line with
 * `edgeOrder` 1.
 */
function uneven(take: Take, gapsOf: Take, size: number, edgeOrder: 1 | 2): Tensor[] {
  const [left, right] = [gapsOf(0, size - 2), gapsOf(1, size - 2)];
  const both = add(left, right);
  const slope = (weights: readonly Tensor[], points: readonly Tensor[]): Tensor =>
    weights.map((weight, i) => mul(weight, points[i]!)).reduce((sum, part) => add(sum, part));
  const inside = slope(
    [div(right, mul(left, both)).neg(), div(sub(right, left), mul(left, right)), div(left, mul(right, both))],
    [take(0, size - 2), take(1, size - 2), take(2, size - 2)],
  );
  const end = (at: number, step: 1 | -1): Tensor => {
    const gapAt = (i: number): Tensor => gapsOf(step === 1 ? at + i : at - 1 - i, 1);
    const [first, second, near] = [take(at, 1), take(at + step, 1), gapAt(0)];
    if (edgeOrder === 1) return div(sub(second, first), mul(near, step));
    const [third, far] = [take(at + 2 * step, 1), gapAt(1)];
    const whole = add(near, far);
    const weights = [
      div(add(mul(near, 2), far), mul(near, whole)).neg(),
      div(whole, mul(near, far)),
      div(near, mul(far, whole)).neg(),
    ];
    return mul(slope(weights, [first, second, third]), step);
  };
  return [end(0, 1), inside, end(size - 1, -1)];
}

/**
 * Estimates the derivative along each of `dims` (default: all) of a function whose values at points `a` has: central
 * differences inside, one-sided ones at the ends. Returns a tensor of the shape of `a` for each dimension. Integers
 * give float32. Throws unless each dimension has more than `edgeOrder` elements.
 */
export function gradient(a: Tensor, dims?: Dims, options: GradientOptions = {}): Tensor[] {
  const op = 'gradient';
  requireTensor(op, a);
  checkOptions(op, options, gradientOptions);
  requireNumbers(op, a);
  const along = dims === undefined ? [...a.shape.keys()] : checkedDims(op, dims, a.rank);
  const { spacing = 1, edgeOrder = 1 } = options;
  const steps = spacings(a, along, spacing);
  if (along.some((dim) => a.shape[dim]! <= edgeOrder))
    throw needsRank(`${op}: each dimension has more than ${edgeOrder} elements`, a.rank, a.shape);
  return scope(() => {
    const values = isFloat(a.dtype) ? a : to(a, 'float32');
    return along.map((dim, i) => {
      const size = a.shape[dim]!;
      const take: Take = (start, count) => narrow(values, dim, start, count);
      const step = steps[i]!;
      if (!(step instanceof Tensor)) return cat(even(take, size, step, edgeOrder), dim);
      const positions = isFloat(step.dtype) ? step : to(step, 'float32');
      const gaps = sub(narrow(positions, 0, 1, size - 1), narrow(positions, 0, 0, size - 1));
      const gapsOf: Take = (start, count) =>
        reshape(
          narrow(gaps, 0, start, count),
          a.shape.map((_, d) => (d === dim ? count : 1)),
        );
      return cat(uneven(take, gapsOf, size, edgeOrder), dim);
    });
  });
}
