// scatterReduce(): combines elements of a source by index. Sums and means are made of other operations; products and
// extremes have a kernel and a gradient of their own.
import { customFunction } from '../../autograd/custom.ts';
import { notOfBool } from '../../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { checkValue, flag } from '../../checks/value-checks.ts';
import { isGradEnabled, scope } from '../../core/context.ts';
import { full, zerosLike } from '../../core/creation.ts';
import { isFloat, isHalf } from '../../core/dtype.ts';
import type { ScatterReduction } from '../../core/op-options.ts';
import { checkedDim } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mixedDtypes } from '../../errors.ts';
import { add, div, eq, logicalAnd, logicalOr, maximum, mul, ne, sub } from '../elementwise/binary.ts';
import { maskedFill, where } from '../elementwise/choose.ts';
import { contiguous, requireTensor, to } from '../elementwise/convert.ts';
import { floor } from '../elementwise/unary.ts';
import { reshape } from '../shape/views.ts';
import { asRow, fitted, gather, prepared, sizesOf } from './lookup.ts';
import { written } from './moves.ts';
import { scatter, scatterAdd } from './scatter.ts';

/** Options of scatterReduce(). */
export interface ScatterReduceOptions {
  /** Whether the elements of the tensor take part. Default true. */
  readonly includeSelf?: boolean;
}

const reduceOptions = optionChecks<ScatterReduceOptions>({ includeSelf: flag });
const reductions: readonly ScatterReduction[] = ['sum', 'prod', 'mean', 'amax', 'amin'];
const aReduction = {
  expected: reductions.map((name) => `'${name}'`).join(', '),
  fits: (value: unknown) => (reductions as readonly unknown[]).includes(value),
};

interface Site {
  readonly dim: number;
  readonly index: Tensor;
  readonly includeSelf: boolean;
}

/** Returns `a` with `value` at the indexed positions if the elements of `a` there are not to take part. */
const without = (a: Tensor, { dim, index, includeSelf }: Site, value: number): Tensor =>
  includeSelf ? a : scatter(a, dim, index, value);

/**
 * Returns ⌊total / counts⌋ of int64. The second step divides the remainder of the first one, which is computed in
 * float64.
 */
function dividedDown(total: Tensor, counts: Tensor): Tensor {
  const quotient = (x: Tensor): Tensor => to(floor(div(to(x, 'float64'), to(counts, 'float64'))), 'int64');
  const first = quotient(total);
  return add(first, quotient(sub(total, mul(first, counts))));
}

/** Returns the mean, rounded down for integers, as PyTorch does. Sums of 16-bit floats are computed in float32. */
function meanOf(a: Tensor, source: Tensor, site: Site): Tensor {
  const { dim, index } = site;
  const wide = isHalf(a.dtype) ? 'float32' : isFloat(a.dtype) ? a.dtype : 'int64';
  const total = scatterAdd(without(to(a, wide), site, 0), dim, index, to(source, wide));
  const counter = { dtype: wide, device: a.device } as const;
  const first = without(full(a.shape, 1, counter), site, 0);
  const counts = maximum(scatterAdd(first, dim, index, full(index.shape, 1, counter)), 1);
  return to(wide === 'int64' ? dividedDown(total, counts) : div(total, counts), a.dtype);
}

/** Multiplies by index; where operations are recorded, with a gradient, so that gradients of products have one. */
const product = (a: Tensor, source: Tensor, site: Site): Tensor =>
  isGradEnabled() ? reduced('mul', site.dim, true)(a, source, site.index) : combined('mul', a, source, site);

/** Combines where nothing is recorded. The index is checked, and at most as large as `a` in the other dimensions. */
function combined(op: 'mul' | 'min' | 'max', a: Tensor, source: Tensor, { dim, index }: Site): Tensor {
  const part = fitted('scatterReduce', a, dim, index).shape;
  const sizes = sizesOf(part, dim, index.shape[dim]!, true);
  return written('scatterReduce', op, a, contiguous(source), index, part, sizes);
}

/** Returns 1 where a mask is true, else 0, in the dtype of `like`. */
const ones = (mask: Tensor, like: Tensor): Tensor => to(mask, like.dtype);

/** Returns the gradients of a product: the gradient of an element is the product of the others. */
function productGradients(grad: Tensor, a: Tensor, source: Tensor, site: Site): [Tensor, Tensor] {
  const { dim, index } = site;
  const noZero = (x: Tensor): Tensor => maskedFill(x, eq(x, 0), 1);
  const start = without(a, site, 1);
  const others = product(noZero(start), source, site);
  const toA = without(div(mul(grad, others), noZero(start)), site, 0);
  const zero = eq(source, 0);
  const zeros = scatterAdd(zerosLike(a), dim, index, ones(zero, a));
  const isOnlyZero = logicalAnd(zero, eq(gather(zeros, dim, index), 1));
  const withoutIt = product(start, maskedFill(source, isOnlyZero, 1), site);
  const all = product(start, source, site);
  const at = (x: Tensor): Tensor => gather(mul(grad, x), dim, index);
  return [toA, where(isOnlyZero, at(withoutIt), div(at(all), noZero(source)))];
}

/** Returns where two tensors are equal; NaN equals NaN. */
const same = (x: Tensor, y: Tensor): Tensor => logicalOr(eq(x, y), logicalAnd(ne(x, x), ne(y, y)));

/** Returns the gradients of a minimum or maximum: equal extremes share it. */
function extremeGradients(
  grad: Tensor,
  a: Tensor,
  source: Tensor,
  out: Tensor,
  site: Site,
): [Tensor, Tensor] {
  const { dim, index } = site;
  const own = without(ones(same(a, out), a), site, 0);
  const given = ones(same(source, gather(out, dim, index)), source);
  const shares = div(grad, maximum(scatterAdd(own, dim, index, given), 1));
  return [mul(own, shares), mul(given, gather(shares, dim, index))];
}

const reduced = (op: 'mul' | 'min' | 'max', dim: number, includeSelf: boolean) =>
  customFunction({
    name: 'scatterReduce',
    forward: (context, a: Tensor, source: Tensor, index: Tensor) => {
      const site = { dim, index, includeSelf };
      // Elements that do not take part are replaced: by 1, or by those of the source, which an extreme may see twice.
      const start = op === 'mul' ? without(a, site, 1) : includeSelf ? a : scatter(a, dim, index, source);
      const out = combined(op, start, source, site);
      context.save(a, source, index, out);
      return out;
    },
    backward: (context, grad) => {
      const [a, source, index, out] = context.saved as [Tensor, Tensor, Tensor, Tensor];
      const site = { dim, index, includeSelf };
      const gradients =
        op === 'mul' ? productGradients(grad, a, source, site) : extremeGradients(grad, a, source, out, site);
      return [...gradients, null];
    },
  });

/**
 * Combines elements of `source` with the elements of a copy of `a` that `index` names along `dim`. Shapes have the
 * rules of scatterAdd(). 'mean' of integers rounds down; equal extremes share a gradient.
 */
export function scatterReduce(
  a: Tensor,
  dim: number,
  index: Tensor,
  source: Tensor,
  reduce: ScatterReduction,
  options: ScatterReduceOptions = {},
): Tensor {
  const op = 'scatterReduce';
  for (const tensor of [a, index, source]) requireTensor(op, tensor);
  checkValue(`${op}: reduce`, reduce, aReduction);
  checkOptions(op, options, reduceOptions);
  if (source.dtype !== a.dtype) throw mixedDtypes(op, a.dtype, source.dtype);
  if (reduce === 'mean' && a.dtype === 'bool')
    throw notOfBool('scatterReduce mean', "'amax', or .to('int64')");
  const includeSelf = options.includeSelf ?? true;
  return scope(() => {
    const [whole, positions, given] = [asRow(a), asRow(index), asRow(source)];
    const at = checkedDim(op, dim, whole.rank);
    if (positions.count === 0) return scatterAdd(a, dim, index, source);
    fitted(op, whole, at, positions);
    const part = fitted(op, given, null, positions);
    const site = { dim: at, index: prepared(op, positions, whole.shape[at]!), includeSelf };
    if (reduce === 'sum') return reshape(scatterAdd(without(whole, site, 0), at, site.index, part), a.shape);
    if (reduce === 'mean') return reshape(meanOf(whole, part, site), a.shape);
    const name = reduce === 'prod' ? 'mul' : reduce === 'amax' ? 'max' : 'min';
    return reshape(reduced(name, at, includeSelf)(whole, part, site.index), a.shape);
  });
}
