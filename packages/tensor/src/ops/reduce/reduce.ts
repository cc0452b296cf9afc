// Reductions over the given dimensions, or over all.

import { graphOf, summedTo } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { ReduceOp } from '../../backends/declarations/names.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { notOfBool } from '../../checks/argument-errors.ts';
import { checkFlag } from '../../checks/arguments.ts';
import { refuseOptions } from '../../checks/options.ts';
import { eye, zeros } from '../../core/creation.ts';
import { type DType, isFloat } from '../../core/dtype.ts';
import { keptStrides, withStrides } from '../../core/layout.ts';
import { allocate } from '../../core/memory/storage.ts';
import type { Dims } from '../../core/op-options.ts';
import { checkedDim, countOf, dimMask, reducedShape, type Shape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { emptyReduction } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { eq, logicalOr, ne } from '../elementwise/binary.ts';
import { requireFloat, requireTensor } from '../elementwise/convert.ts';
import { Calculation, contribute } from '../gradient.ts';

interface Reduced {
  readonly out: Tensor;
  /** The result's strides in the shape of the input. */
  readonly strides: readonly number[];
  /** Elements of the input for each element of the result. */
  readonly size: number;
}

function reduced(
  name: string,
  op: ReduceOp,
  a: Tensor,
  dtype: DType,
  dims: Dims | undefined,
  keepDim: boolean,
): Reduced {
  const mask = dimMask(name, dims, a.rank);
  checkFlag(name, 'keepDim', keepDim);
  const out = empty(dtype, reducedShape(a.shape, mask, keepDim), a.device);
  const strides = keptStrides(a.shape, mask);
  const size = reducedCount(name, a, dims);
  if (size === 0 && (op === 'max' || op === 'min')) {
    out.dispose();
    throw emptyReduction(name, a.shape);
  }
  kernels().reduce(op, a.shape, withStrides(out.strided, strides), a.strided);
  return { out, strides, size };
}

/** Returns the shape of a reduced tensor of `shape` with its dimensions kept; reduced ones have the stride 0. */
const keptShape = (shape: Shape, strides: readonly number[]): Shape =>
  shape.map((size, d) => (strides[d] === 0 ? 1 : size));

/** Repeats a reduced tensor along the dimensions that were reduced. */
function spread(reduced: Tensor, shape: Shape, strides: readonly number[]): Tensor {
  if (countOf(shape) === 0) return zeros(shape, { dtype: reduced.dtype, device: reduced.device });
  return reduced.reshape(keptShape(shape, strides)).expand(shape);
}

/** Returns for each element the product of the others that `prod` multiplies with it, by all pairs of elements. */
function productsOfOthers(x: Tensor, strides: readonly number[]): Tensor {
  const dims = [...x.shape.keys()];
  const [kept, gone] = [dims.filter((d) => strides[d] !== 0), dims.filter((d) => strides[d] === 0)];
  const order = [...kept, ...gone];
  const turned = x.permute(order);
  const count = countOf(gone.map((d) => x.shape[d]!));
  const rows = turned.reshape([countOf(kept.map((d) => x.shape[d]!)), 1, count]);
  const self = eye(count, count, { dtype: 'bool', device: x.device });
  const products = prod(rows.expand([rows.shape[0]!, count, count]).maskedFill(self, 1), -1);
  return products.reshape(turned.shape).permute(order.map((_, d) => order.indexOf(d)));
}

/** Returns the dtype of a sum: int64 for integers and bool. */
const totalType = (dtype: DType): DType => (isFloat(dtype) ? dtype : 'int64');

/**
 * Sums over `dims`; over all dimensions if `dims` are absent or an empty array, which in `any` and `all` names none.
 * Integers and bool are summed in int64.
 */
export function sum(a: Tensor, dims?: Dims, keepDim?: boolean): Tensor;
export function sum(a: Tensor, dims?: Dims, keepDim = false, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('sum', extra);
  requireTensor('sum', a);
  const raised = recast('float32', [a], (wide) => sum(wide!, dims, keepDim));
  if (raised) return raised;
  const { out, strides } = reduced('sum', 'sum', a, totalType(a.dtype), dims, keepDim);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  return record('sum', out, [target], [], (grad, graph) => {
    if (graph) {
      graphOf(graph).send(target, spread(graphOf(graph).grad, shape, strides));
      return;
    }
    const into = target.begin();
    kernels().copy(shape, into.dense, withStrides(grad.dense, strides));
    target.end(into);
  });
}

/** Computes the mean of floats over `dims`. The mean of nothing is NaN. */
export function mean(a: Tensor, dims?: Dims, keepDim?: boolean): Tensor;
export function mean(a: Tensor, dims?: Dims, keepDim = false, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('mean', extra);
  requireFloat('mean', a);
  const { out, strides, size } = reduced('mean', 'mean', a, a.dtype, dims, keepDim);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape, dtype } = a;
  return record('mean', out, [target], [], (grad, graph) => {
    if (graph) {
      graphOf(graph).send(target, spread(graphOf(graph).grad.mul(1 / size), shape, strides));
      return;
    }
    const into = target.begin();
    kernels().map('mul', dtype, shape, into.dense, withStrides(grad.dense, strides), 1 / size);
    target.end(into);
  });
}

/**
 * Returns the values of the maxima. Equal maxima share the gradient evenly, as in torch.amax. If the maximum is NaN, so
 * is the gradient; but if `dims` are absent, the elements that are NaN share it.
 */
export const max = (a: Tensor, dims?: Dims, keepDim = false): Tensor => extreme('max', a, dims, keepDim);
/** Returns the values of the minima, with gradients like those of `max`. */
export const min = (a: Tensor, dims?: Dims, keepDim = false): Tensor => extreme('min', a, dims, keepDim);

function extreme(op: 'max' | 'min', a: Tensor, dims: Dims | undefined, keepDim: boolean): Tensor {
  requireTensor(op, a);
  const { out, strides } = reduced(op, op, a, a.dtype, dims, keepDim);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape, dtype, strided: values } = a;
  const best = out.strided;
  const { count } = out;
  const outShape = out.shape;
  return record(op, out, [target], [a.storage, out.storage], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const x = own.saved(values, shape, null);
      // The choice of elements does not change with x; the gradient depends on that of the result alone.
      const isBest = eq(x, spread(own.saved(best, outShape, null), shape, strides));
      const marks = (dims === undefined ? logicalOr(isBest, ne(x, x)) : isBest).to(dtype);
      const counts = spread(summedTo(marks, keptShape(shape, strides)), shape, strides);
      own.send(target, spread(own.grad, shape, strides).mul(marks).div(counts));
      return;
    }
    const k = new Calculation(dtype, shape, grad.memory.device);
    const share = allocate(dtype, count, grad.memory.device);
    const stretched = withStrides(share.dense, strides);
    contribute(target, k, shape, (into) => {
      markExtremes(k, into, values, withStrides(best, strides), dims === undefined);
      kernels().reduce('sum', shape, stretched, into);
      kernels().map('div', dtype, [count], share.dense, grad.dense, share.dense);
      k.map('mul', into, into, stretched);
    });
    share.release();
  });
}

/** Writes 1 where an element is the extreme and, if `takesNaN`, where it is NaN; else 0. */
function markExtremes(k: Calculation, into: Strided, x: Strided, best: Strided, takesNaN: boolean): void {
  k.map('eq', into, x, best);
  if (!takesNaN) return;
  // If an element is NaN, so is the extreme, and no other element equals it.
  const isMissing = k.temporary();
  k.map('ne', isMissing, x, x);
  k.map('max', into, into, isMissing);
}

/** Computes the product over `dims`. The gradient is also right where elements are 0. */
export function prod(a: Tensor, dims?: Dims, keepDim?: boolean): Tensor;
export function prod(a: Tensor, dims?: Dims, keepDim = false, extra?: unknown): Tensor {
  if (extra !== undefined) refuseOptions('prod', extra);
  requireTensor('prod', a);
  const raised = recast('float32', [a], (wide) => prod(wide!, dims, keepDim));
  if (raised) return raised;
  const { out, strides } = reduced('prod', 'prod', a, totalType(a.dtype), dims, keepDim);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape, dtype, strided: values } = a;
  const { count } = out;
  return record('prod', out, [target], [a.storage], (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const others = productsOfOthers(own.saved(values, shape, target), strides);
      own.send(target, spread(own.grad, shape, strides).mul(others));
      return;
    }
    const k = new Calculation(dtype, shape, grad.memory.device);
    contribute(target, k, shape, (into) =>
      prodGradient(k, into, values, withStrides(grad.dense, strides), count),
    );
  });
}

/**
 * Writes the gradient: the product of the other elements. Zeros are counted and replaced by 1; the product is
 * then divided by x where no other element is 0. Elsewhere the gradient is 0, also if the product overflows, or NaN
 * beside an element that is NaN or infinite.
 */
function prodGradient(k: Calculation, into: Strided, x: Strided, grad: Strided, count: number): void {
  const isZero = k.temporary();
  const nonzero = k.temporary();
  const [product, zeros] = [allocate(k.dtype, count, k.device), allocate(k.dtype, count, k.device)];
  const stretch = (storage: typeof product): Strided => withStrides(storage.dense, grad.strides);
  k.map('eq', isZero, x, 0);
  k.map('where', nonzero, isZero, 1, x);
  kernels().reduce('prod', k.shape, stretch(product), nonzero);
  kernels().reduce('sum', k.shape, stretch(zeros), isZero);
  // The number of zeros among the other elements.
  k.map('sub', isZero, stretch(zeros), isZero);
  k.map('eq', isZero, isZero, 0);
  k.map('div', into, stretch(product), nonzero);
  // 0 times an element is NaN if the element is NaN or infinite.
  k.map('mul', nonzero, nonzero, 0);
  kernels().reduce('sum', k.shape, stretch(zeros), nonzero);
  k.map('where', into, isZero, into, stretch(zeros));
  k.map('mul', into, into, grad);
  product.release();
  zeros.release();
}

/** Returns a bool tensor: whether any element is not 0. */
export const any = (a: Tensor, dims?: Dims, keepDim = false): Tensor =>
  counted('any', a, 'ne', ne, dims, keepDim);
/** Returns a bool tensor: whether no element is 0. */
export const all = (a: Tensor, dims?: Dims, keepDim = false): Tensor =>
  counted('all', a, 'eq', eq, dims, keepDim);

function counted(
  name: string,
  a: Tensor,
  what: 'eq' | 'ne',
  test: typeof eq,
  dims: Dims | undefined,
  keepDim: boolean,
): Tensor {
  requireTensor(name, a);
  // As in PyTorch, these two reduce over no dimension where the array of them is empty.
  if (Array.isArray(dims) && dims.length === 0) return ne(a, 0);
  const matches = test(a, 0);
  const { out: count } = reduced(name, 'sum', matches, 'int64', dims, keepDim);
  const out = what === 'ne' ? ne(count, 0) : eq(count, 0);
  matches.dispose();
  count.dispose();
  return out;
}

/** Returns the int64 index of the first maximum along `dim`, or in the flattened tensor. NaN counts as the largest. */
export const argmax = (a: Tensor, dim?: number, keepDim = false): Tensor => position('max', a, dim, keepDim);
/** Returns the int64 index of the first minimum along `dim`, or in the flattened tensor. NaN counts as the smallest. */
export const argmin = (a: Tensor, dim?: number, keepDim = false): Tensor => position('min', a, dim, keepDim);

function position(op: 'max' | 'min', a: Tensor, dim: number | undefined, keepDim: boolean): Tensor {
  const name = `arg${op}`;
  requireTensor(name, a);
  if (a.dtype === 'bool') throw notOfBool(name, ".to('uint8')");
  checkFlag(name, 'keepDim', keepDim);
  const isOne = a.rank === 0 && (dim === 0 || dim === -1);
  const at = dim === undefined || isOne ? null : checkedDim(name, dim, a.rank);
  if ((at === null ? a.count : a.shape[at]) === 0) throw emptyReduction(name, a.shape);
  const mask = a.shape.map((_, d) => at === null || d === at);
  const out = empty('int64', reducedShape(a.shape, mask, keepDim), a.device);
  kernels().argReduce(op, a.shape, withStrides(out.strided, keptStrides(a.shape, mask)), a.strided);
  return out;
}

/** Returns the number of elements of `a` for each element of a result that is reduced over `dims`. */
export function reducedCount(name: string, a: Tensor, dims: Dims | undefined): number {
  const mask = dimMask(name, dims, a.rank);
  return countOf(a.shape.filter((_, d) => mask[d]));
}
