// Norms of vectors along dimensions, with the gradients that PyTorch gives: 0 where a vector of zeros has no direction.

import { graphOf, summedTo } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aNumber, flag } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { keptStrides, withStrides } from '../../core/layout.ts';
import { allocate } from '../../core/memory/storage.ts';
import type { Dims, NormOptions } from '../../core/op-options.ts';
import { dimMask } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { emptyReduction } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { logicalOr, ne, pow } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { inFloat32, needsFloat32, requireFloat, to } from '../elementwise/convert.ts';
import { abs, sqrt, square } from '../elementwise/unary.ts';
import { Calculation, contribute } from '../gradient.ts';
import { max, min, reducedCount, sum } from './reduce.ts';

const normOptions = optionChecks<NormOptions>({ p: aNumber, keepDim: flag });

/** Computes (Σ |a|^p)^(1/p) over `dims`. The gradient of a vector of zeros is 0. */
export function norm(a: Tensor, dims?: Dims, options: NormOptions = {}): Tensor {
  requireFloat('norm', a);
  checkOptions('norm', options, normOptions);
  const raised = recast('float32', [a], (wide) => norm(wide!, dims, options));
  if (raised) return raised;
  const { p = 2, keepDim = false } = options;
  // Powers exceed the range of float16.
  if (needsFloat32(a)) return inFloat32(a, (wide) => norm(wide, dims, options));
  const kept = keptStrides(a.shape, dimMask('norm', dims, a.rank));
  if ((p < 0 || p === Infinity) && reducedCount('norm', a, dims) === 0) throw emptyReduction('norm', a.shape);
  const out = noGrad(() => scope(() => value(a, p, dims, keepDim)));
  return isRecording(a) ? recorded(a, p, kept, out) : out;
}

function value(a: Tensor, p: number, dims: Dims | undefined, keepDim: boolean): Tensor {
  if (p === Infinity) return max(abs(a), dims, keepDim);
  if (p === -Infinity) return min(abs(a), dims, keepDim);
  if (p === 0) return sum(to(ne(a, 0), a.dtype), dims, keepDim);
  if (p === 1) return sum(abs(a), dims, keepDim);
  if (p === 2) return sqrt(sum(square(a), dims, keepDim));
  return pow(sum(pow(abs(a), p), dims, keepDim), 1 / p);
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(a: Tensor, p: number, kept: readonly number[], out: Tensor): Tensor {
  const target = a.target!;
  const { shape, strided: x } = a;
  const { dense: length } = out.storage;
  const { count, dtype } = out;
  const outShape = out.shape;
  return record('norm', out, [target], [a.storage, out.storage], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const wide = (a: Tensor): Tensor => a.reshape(shape.map((size, d) => (kept[d] === 0 ? 1 : size)));
      const norm = own.result(length, outShape);
      own.send(target, slopes(own.saved(x, shape, target), wide(norm), wide(own.grad), p));
      return;
    }
    const k = new Calculation(dtype, shape, grad.memory.device);
    const own = allocate(dtype, count, grad.memory.device);
    const one = new Calculation(dtype, [count], grad.memory.device);
    contribute(target, k, shape, (into) => {
      if (p === 2) direction(k, into, x, withStrides(length, kept));
      else if (Number.isFinite(p)) slope(k, into, x, p);
      else signOfExtreme(k, into, x, withStrides(length, kept), withStrides(own.dense, kept));
      factor(one, own.dense, grad.dense, length, p);
      k.map('mul', into, into, withStrides(own.dense, kept));
    });
    own.release();
  });
}

/** Returns the gradient as a tensor, by the formulas of direction(), slope(), signOfExtreme() and factor(). */
function slopes(x: Tensor, norm: Tensor, grad: Tensor, p: number): Tensor {
  if (p === 0) return x.mul(0).mul(grad);
  if (p === 1) return x.sign().mul(grad);
  if (p === 2) return where(norm.ne(0), x.div(norm), 0).mul(grad);
  if (!Number.isFinite(p)) {
    const isExtreme = logicalOr(x.abs().eq(norm), x.ne(x)).to(x.dtype);
    return x
      .sign()
      .mul(isExtreme)
      .mul(grad.div(summedTo(isExtreme, norm.shape)));
  }
  const power = x.abs().pow(p < 2 ? p - 1 : p - 2);
  const slope = (p < 1 ? where(x.ne(0), power, 0) : power).mul(p < 2 ? x.sign() : x);
  return slope.mul(p < 1 ? norm.pow(1 - p).mul(grad) : where(norm.ne(0), grad.div(norm.pow(p - 1)), 0));
}

/** Writes x ÷ length, and 0 where the length is 0. */
function direction(k: Calculation, into: Strided, x: Strided, length: Strided): void {
  k.map('div', into, x, length);
  k.map('where', into, length, into, 0);
}

/**
 * Writes the sign where the magnitude is that of the norm or NaN, else 0; and into `shares` how many elements
 * these are.
 */
function signOfExtreme(k: Calculation, into: Strided, x: Strided, norm: Strided, shares: Strided): void {
  const other = k.temporary();
  k.map('ne', other, x, x);
  k.map('abs', into, x);
  k.map('eq', into, into, norm);
  k.map('max', into, into, other);
  kernels().reduce('sum', k.shape, shares, into);
  k.map('sign', other, x);
  k.map('mul', into, into, other);
}

/** Writes sign(x) |x|^(p − 1), the part of the slope that an element gives; 0 for p = 0, and for p < 1 where x is 0. */
function slope(k: Calculation, into: Strided, x: Strided, p: number): void {
  if (p === 0) {
    kernels().copy(k.shape, into, 0);
  } else if (p === 1) {
    k.map('sign', into, x);
  } else {
    const other = k.temporary();
    k.map('abs', into, x);
    k.map('pow', into, into, p < 2 ? p - 1 : p - 2);
    if (p < 1) k.map('where', into, x, into, 0);
    if (p < 2) k.map('sign', other, x);
    k.map('mul', into, into, p < 2 ? other : x);
  }
}

/** Writes the factor of a vector's gradient; for an infinite p, `into` holds the number of elements that share it. */
function factor(one: Calculation, into: Strided, grad: Strided, length: Strided, p: number): void {
  if (p === 0 || p === 1 || p === 2) {
    kernels().copy(one.shape, into, grad);
  } else if (!Number.isFinite(p)) {
    one.map('div', into, grad, into);
  } else if (p < 1) {
    one.map('pow', into, length, 1 - p);
    one.map('mul', into, into, grad);
  } else {
    one.map('pow', into, length, p - 1);
    one.map('div', into, grad, into);
    one.map('where', into, length, into, 0);
  }
}
