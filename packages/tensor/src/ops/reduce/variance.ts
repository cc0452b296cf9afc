// Variance and standard deviation. Their gradients are written out, because that of the formula is NaN where all
// elements are equal.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { finite, flag } from '../../checks/value-checks.ts';
import { noGrad } from '../../core/context.ts';
import { keptStrides, withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import type { Dims, VarianceOptions } from '../../core/op-options.ts';
import { dimMask } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { div, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { inFloat32, needsFloat32, requireFloat } from '../elementwise/convert.ts';
import { sqrt, square } from '../elementwise/unary.ts';
import { Calculation, contribute } from '../gradient.ts';
import { mean, reducedCount, sum } from './reduce.ts';

const varianceOptions = optionChecks<VarianceOptions>({ correction: finite, keepDim: flag });

/** Computes the variance over `dims`: Σ (a − mean)² ÷ (number of elements − correction). */
export const variance = (a: Tensor, dims?: Dims, options: VarianceOptions = {}): Tensor =>
  spread('variance', a, dims, options);

/** Computes the standard deviation over `dims`: the root of the variance. The gradient of equal elements is 0. */
export const std = (a: Tensor, dims?: Dims, options: VarianceOptions = {}): Tensor =>
  spread('std', a, dims, options);

/** Returns [variance, mean] over `dims`. */
export function varMean(a: Tensor, dims?: Dims, options: VarianceOptions = {}): [Tensor, Tensor] {
  checkOptions('varMean', options, varianceOptions);
  return [variance(a, dims, options), mean(a, dims, options.keepDim ?? false)];
}

type Name = 'variance' | 'std';

function spread(name: Name, a: Tensor, dims: Dims | undefined, options: VarianceOptions): Tensor {
  requireFloat(name, a);
  checkOptions(name, options, varianceOptions);
  // Squares leave the range of float16, and means have few digits there.
  if (needsFloat32(a)) return inFloat32(a, (wide) => spread(name, wide, dims, options));
  const { correction = 1, keepDim = false } = options;
  const freedom = reducedCount(name, a, dims) - correction;
  const [middle, out] = noGrad(() => {
    const middle = mean(a, dims, true);
    const distance = sub(a, middle);
    const squares = square(distance);
    const total = sum(squares, dims, keepDim);
    const squared = div(total, Math.max(0, freedom));
    const out = name === 'std' ? sqrt(squared) : squared;
    for (const tensor of [distance, squares, total]) tensor.dispose();
    if (out !== squared) squared.dispose();
    return [middle, out] as const;
  });
  const kept = keptStrides(a.shape, dimMask(name, dims, a.rank));
  if (isRecording(a)) recorded(name, a, middle, out, kept, freedom, dims === undefined || a.rank === 0);
  middle.dispose();
  return out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(
  name: Name,
  a: Tensor,
  middle: Tensor,
  out: Tensor,
  kept: readonly number[],
  freedom: number,
  isOfAll: boolean,
): void {
  const target = a.target!;
  const { shape, dtype, strided: values } = a;
  // As in PyTorch, the gradient over all elements without a degree of freedom is that of a division by 0: NaN where an
  // element is the mean, else infinite.
  const outShape = out.shape;
  const hasNoFreedom = isOfAll && freedom <= 0;
  const [mean, result, { count }] = [middle.storage.dense, out.strided, out];
  record(name, out, [target], [a.storage, middle.storage, out.storage], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const x = own.saved(values, shape, target);
      const dims = kept.flatMap((stride, d) => (stride === 0 ? [d] : []));
      const distance = x.sub(x.mean(dims, true));
      const slope = hasNoFreedom ? where(distance.eq(0), NaN, Infinity) : distance.div(freedom);
      const root = own.result(result, outShape);
      const factor = name === 'std' ? where(root.ne(0), own.grad.div(root), 0) : own.grad.mul(2);
      own.send(target, slope.mul(factor.reshape(shape.map((size, d) => (kept[d] === 0 ? 1 : size)))));
      return;
    }
    const k = new Calculation(dtype, shape, grad.memory.device);
    const factor = allocate(dtype, count, grad.memory.device);
    const one = new Calculation(dtype, [count], grad.memory.device);
    if (name === 'std') slopeOfRoot(one, factor.dense, grad, result);
    else one.map('mul', factor.dense, grad.dense, 2);
    if (!hasNoFreedom) one.map('div', factor.dense, factor.dense, freedom);
    contribute(target, k, shape, (into) => {
      if (hasNoFreedom) {
        k.map('eq', into, values, withStrides(mean, kept));
        k.map('where', into, into, NaN, Infinity);
      } else {
        k.map('sub', into, values, withStrides(mean, kept));
      }
      k.map('mul', into, into, withStrides(factor.dense, kept));
    });
    factor.release();
  });
}

/** Writes grad ÷ root, and 0 where the root is 0. */
function slopeOfRoot(one: Calculation, into: Strided, grad: Storage, root: Strided): void {
  one.map('div', into, grad.dense, root);
  one.map('where', into, root, into, 0);
}
