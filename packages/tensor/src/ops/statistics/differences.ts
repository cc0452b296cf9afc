// Differences of neighbours, and areas under curves.

import { notOfBool } from '../../checks/argument-errors.ts';
import { checkNumber } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aTensor } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { checkedDim } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, lookupShapes, needsRank, shown } from '../../errors.ts';
import { add, div, logicalXor, mul, sub } from '../elementwise/binary.ts';
import { clone, requireTensor } from '../elementwise/convert.ts';
import { sum } from '../reduce/reduce.ts';
import { cat } from '../shape/join.ts';
import { cumsum } from '../shape/order.ts';
import { narrow, reshape, select } from '../shape/views.ts';

/** Options of diff(). */
export interface DiffOptions {
  /** Elements before the tensor's, along the dimension. */
  readonly prepend?: Tensor;
  /** Elements after the tensor's, along the dimension. */
  readonly append?: Tensor;
}

const diffOptions = optionChecks<DiffOptions>({ prepend: aTensor, append: aTensor });

/** Returns the parts without the first and without the last element along `dim`. */
const neighbours = (a: Tensor, dim: number): [later: Tensor, earlier: Tensor] => {
  const size = Math.max(0, a.shape[dim]! - 1);
  return [narrow(a, dim, a.shape[dim]! - size, size), narrow(a, dim, 0, size)];
};

/**
 * Returns the differences of neighbours along `dim`, taken `n` times; of bool, whether they differ. `prepend` and
 * `append` are joined to `a` first, unless `n` is 0.
 */
export function diff(a: Tensor, n = 1, dim = -1, options: DiffOptions = {}): Tensor {
  requireTensor('diff', a);
  checkOptions('diff', options, diffOptions);
  if (a.rank === 0) throw needsRank('diff', 'at least 1', a.shape);
  if (!Number.isSafeInteger(n) || n < 0) throw badOption('diff: n', 'an integer ≥ 0', shown(n));
  const at = checkedDim('diff', dim, a.rank);
  if (n === 0) return clone(a);
  const { prepend, append } = options;
  return scope(() => {
    const parts = [prepend, a, append].filter((part) => part !== undefined);
    let out = parts.length === 1 ? a : cat(parts, at);
    // After as many differences as there are elements, nothing is left.
    const times = Math.min(n, Math.max(1, out.shape[at]!));
    for (let i = 0; i < times; i++) {
      const [later, earlier] = neighbours(out, at);
      out = a.dtype === 'bool' ? logicalXor(later, earlier) : sub(later, earlier);
    }
    return out;
  });
}

/**
 * Returns the area under a curve along `dim`, by the trapezoidal rule. `x` has the positions of the points, [size] or
 * broadcast to `y`, or is the distance between two of them. Integers give floats.
 */
export function trapezoid(y: Tensor, x: Tensor | number = 1, dim = -1): Tensor {
  requireTensor('trapezoid', y);
  const at = checkedDim('trapezoid', dim, y.rank);
  if (!(x instanceof Tensor)) {
    checkNumber('trapezoid', 'x', x);
    if (y.shape[at] === 0) return scope(() => mul(sum(y, at), x));
    return scope(() => {
      const ends = add(select(y, at, 0), select(y, at, -1));
      return mul(sub(sum(y, at), mul(ends, 0.5)), x);
    });
  }
  return scope(() => mul(sum(strips('trapezoid', y, x, at), at), 0.5));
}

/** Returns twice the area of each strip between neighbours along `dim`, where `x` has the positions of the points. */
function strips(op: string, y: Tensor, x: Tensor, dim: number): Tensor {
  if (x.rank === 1 && x.shape[0] !== y.shape[dim]) throw lookupShapes(op, y.shape, x.shape);
  const positions =
    x.rank === 1
      ? reshape(
          x,
          y.shape.map((_, d) => (d === dim ? x.count : 1)),
        )
      : x;
  const along = x.rank === 1 ? dim : positions.rank - (y.rank - dim);
  const [later, earlier] = neighbours(positions, along);
  const [right, left] = neighbours(y, dim);
  return mul(sub(later, earlier), add(right, left));
}

/**
 * Returns the areas under a curve from its first point to each later one, along `dim`, by trapezoids: one fewer than
 * there are points. `x` is that of trapezoid(). Integers give floats.
 */
export function cumulativeTrapezoid(y: Tensor, x: Tensor | number = 1, dim = -1): Tensor {
  const op = 'cumulativeTrapezoid';
  requireTensor(op, y);
  const at = checkedDim(op, dim, y.rank);
  if (y.rank === 0) throw needsRank(op, 'at least 1', y.shape);
  if (y.dtype === 'bool' || (x instanceof Tensor && x.dtype === 'bool')) throw notOfBool(op, ".to('int64')");
  if (x instanceof Tensor) return scope(() => mul(cumsum(strips(op, y, x, at), at), 0.5));
  checkNumber(op, 'x', x);
  return scope(() => {
    const [right, left] = neighbours(y, at);
    return div(mul(cumsum(add(right, left), at), x), 2);
  });
}
