// Views: other shapes and parts of the same memory. A view is a function from layouts to layouts. Applied to
// the layout of a tensor it gives the view; applied to the dense layout of the tensor's gradient it gives the
// location of the view's gradient.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { GradTarget } from '../../autograd/target.ts';
import { kernels } from '../../backends/index.ts';
import { turnedRange } from '../../checks/argument-errors.ts';
import { checkInteger, checkList } from '../../checks/arguments.ts';
import { tooManyToTranspose } from '../../checks/op-errors.ts';
import {
  denseLayout,
  expanded,
  inserted,
  type Layout,
  narrowed,
  onDiagonal,
  permuted,
  reshaped,
  selected,
  without,
} from '../../core/layout.ts';
import type { Storage } from '../../core/memory/storage.ts';
import { checkedDim, checkedDims, checkRank, countOf, type Shape } from '../../core/shape.ts';
import { empty, type Tensor, viewAs, viewOf } from '../../core/tensor.ts';
import { badIndex, badPermutation, badRange, cannotReshape, cannotView } from '../../errors.ts';
import { contiguous, requireTensor } from '../elementwise/convert.ts';

/**
 * How the elements of a view relate to those of the tensor: 'same', in the same order; 'permuted', all of them in
 * another order; 'part', some of them; 'stretched', some of them several times.
 */
type Kind = 'same' | 'permuted' | 'part' | 'stretched';

/** Sends the gradient of a view on to the tensor. `region` is the view's location in the tensor's gradient. */
function sendBack(kind: Kind, target: GradTarget, grad: Storage, shape: Shape, region: Layout): void {
  if (kind === 'part') {
    const into = target.open();
    if (!target.isFilled) kernels().copy([target.count], into, 0);
    const part = { memory: into.memory, offset: region.offset, strides: region.strides };
    kernels().map('add', target.dtype, shape, part, part, grad.dense);
    target.close();
  } else {
    const into = target.begin();
    const all = { memory: into.memory, offset: region.offset, strides: region.strides };
    if (kind === 'permuted') kernels().copy(shape, all, grad.dense);
    else kernels().reduce('sum', shape, all, grad.dense);
    target.end(into);
  }
}

/**
 * Returns the gradient of the tensor of `shape` from the gradient of its view. It writes the elements that the view
 * reads, so each is the gradient of the other.
 */
function withView(kind: Kind, grad: Tensor, shape: Shape, change: (layout: Layout) => Layout): Tensor {
  const out = empty(grad.dtype, shape, grad.device);
  const { memory } = out.storage.dense;
  const { offset, strides } = change(denseLayout(shape));
  const region = { memory, offset, strides };
  if (kind === 'part') kernels().copy(shape, out.strided, 0);
  if (kind === 'stretched') kernels().reduce('sum', grad.shape, region, grad.strided);
  else kernels().copy(grad.shape, region, grad.strided);
  if (!isRecording(grad)) return out;
  const target = grad.target!;
  return record('withView', out, [target], [], (given, graph) => {
    if (graph) {
      graphOf(graph).send(target, derived('view', contiguous(graphOf(graph).grad), kind, change));
      return;
    }
    const into = target.begin();
    kernels().copy(grad.shape, into.dense, { memory: given.memory, offset, strides });
    target.end(into);
  });
}

function derived(name: string, a: Tensor, kind: Kind, change: (layout: Layout) => Layout): Tensor {
  const out = viewOf(a, change(a.layout));
  if (kind === 'same') return sharing(name, a, out);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  return record(name, out, [target], [], (grad, graph) => {
    if (graph) graphOf(graph).send(target, withView(kind, graphOf(graph).grad, shape, change));
    else sendBack(kind, target, grad, out.shape, change(denseLayout(shape)));
  });
}

/** Records `out`, which has the elements of `a` in the same order. */
function sharing(name: string, a: Tensor, out: Tensor): Tensor {
  if (!isRecording(a)) return out;
  const target = a.target!;
  const { shape } = a;
  return record(name, out, [target], [], (grad, graph) => {
    if (graph) graphOf(graph).send(target, reshape(graphOf(graph).grad, shape));
    else target.share(grad);
  });
}

/** Fills in the size that is −1. */
function resolved(op: string, a: Tensor, shape: Shape): Shape {
  requireTensor(op, a);
  checkList(op, 'the shape', shape);
  const free = shape.indexOf(-1);
  const own = [...shape];
  if (free >= 0) {
    own[free] = 1;
    own[free] = a.count / countOf(own);
  }
  if (!own.every((size) => Number.isSafeInteger(size) && size >= 0) || countOf(own) !== a.count) {
    throw cannotReshape(a.shape, shape);
  }
  checkRank(op, own);
  return own;
}

function reshapedAs(name: string, a: Tensor, shape: Shape): Tensor {
  // Dense strides are dense in every shape.
  if (a.isContiguous) return sharing(name, a, viewAs(a, shape, a.strided));
  const layout = reshaped(a.layout, shape);
  if (layout !== null) return derived(name, a, 'same', () => layout);
  const dense = contiguous(a);
  const out = derived(name, dense, 'same', () => denseLayout(shape));
  dense.dispose();
  return out;
}

/** Returns `a` in another shape. Shares memory if strides allow it, else copies. One size may be −1: it is computed. */
export const reshape = (a: Tensor, shape: Shape): Tensor =>
  reshapedAs('reshape', a, resolved('reshape', a, shape));

/** Returns `a` in another shape as reshape does, but throws where that would copy. */
export function view(a: Tensor, shape: Shape): Tensor {
  const own = resolved('view', a, shape);
  const layout = reshaped(a.layout, own);
  if (layout === null) throw cannotView(a.shape, own);
  return derived('view', a, 'same', () => layout);
}

/** Joins the dimensions startDim … endDim to one, as reshape does. */
export function flatten(a: Tensor, startDim = 0, endDim = -1): Tensor {
  requireTensor('flatten', a);
  // As in PyTorch, a tensor without dimensions counts as one with one dimension.
  const rank = Math.max(1, a.rank);
  const start = checkedDim('flatten', startDim, rank);
  const end = checkedDim('flatten', endDim, rank);
  if (a.rank === 0) return reshapedAs('flatten', a, [1]);
  if (start > end) throw turnedRange('flatten', startDim, endDim);
  const merged = countOf(a.shape.slice(start, end + 1));
  return reshapedAs('flatten', a, [...a.shape.slice(0, start), merged, ...a.shape.slice(end + 1)]);
}

/** Drops the dimensions in `dims` whose size is 1; without `dims`, all such dimensions. Shares memory with `a`. */
export function squeeze(a: Tensor, dims?: number | readonly number[]): Tensor {
  requireTensor('squeeze', a);
  // As in PyTorch, a tensor without dimensions counts as one with one dimension.
  const named = dims === undefined ? null : checkedDims('squeeze', dims, Math.max(1, a.rank));
  const ones = a.shape.flatMap((size, d) => (size === 1 && (named?.includes(d) ?? true) ? [d] : []));
  return derived('squeeze', a, 'same', (layout) => ones.reduceRight(without, layout));
}

/** Adds a dimension of size 1, which is `dim` of the result. Shares memory with `a`. */
export function unsqueeze(a: Tensor, dim: number): Tensor {
  requireTensor('unsqueeze', a);
  const at = checkedDim('unsqueeze', dim, a.rank + 1);
  checkRank('unsqueeze', [1, ...a.shape]);
  return derived('unsqueeze', a, 'same', (layout) => inserted(layout, at));
}

/** Reorders the dimensions. Shares memory with `a`. */
export function permute(a: Tensor, dims: readonly number[]): Tensor {
  requireTensor('permute', a);
  checkList('permute', 'the order', dims);
  const order = dims.map((dim) => checkedDim('permute', dim, a.rank));
  if (order.length !== a.rank || new Set(order).size !== a.rank) throw badPermutation(dims, a.rank);
  return derived('permute', a, 'permuted', (layout) => permuted(layout, order));
}

/** Swaps two dimensions. Shares memory with `a`. */
export function transpose(a: Tensor, dim0: number, dim1: number): Tensor {
  requireTensor('transpose', a);
  // As in PyTorch, a tensor without dimensions counts as one with one dimension.
  const rank = Math.max(1, a.rank);
  const from = checkedDim('transpose', dim0, rank);
  const to = checkedDim('transpose', dim1, rank);
  const order = a.shape.map((_, d) => (d === from ? to : d === to ? from : d));
  return derived('transpose', a, 'permuted', (layout) => permuted(layout, order));
}

/** Transposes a matrix; returns a tensor of fewer dimensions as it is. Shares memory with `a`. */
export function t(a: Tensor): Tensor {
  requireTensor('t', a);
  if (a.rank > 2) throw tooManyToTranspose(a.shape);
  return a.rank === 2 ? transpose(a, 0, 1) : derived('t', a, 'same', (layout) => layout);
}

/** Broadcasts dimensions of size 1, and adds dimensions in front. −1 keeps a size. Shares memory with `a`. */
export function expand(a: Tensor, shape: Shape): Tensor {
  requireTensor('expand', a);
  checkList('expand', 'the shape', shape);
  checkRank('expand', shape);
  return derived('expand', a, 'stretched', (layout) => expanded(layout, shape));
}

/** Returns `length` indices of `dim` from `start` on; a negative start counts from the end. Shares memory with `a`. */
export function narrow(a: Tensor, dim: number, start: number, length: number): Tensor {
  requireTensor('narrow', a);
  const at = checkedDim('narrow', dim, a.rank);
  checkInteger('narrow', 'start', start);
  checkInteger('narrow', 'length', length);
  const size = a.shape[at]!;
  const from = start < 0 ? start + size : start;
  if (from < 0 || length < 0 || from + length > size) throw badRange('narrow', dim, start, length, size);
  return derived('narrow', a, 'part', (layout) => narrowed(layout, at, from, length, 1));
}

/**
 * Returns the slice at `index` of `dim`, without that dimension. A negative index counts from the end. Shares
 * memory.
 */
export function select(a: Tensor, dim: number, index: number): Tensor {
  requireTensor('select', a);
  const at = checkedDim('select', dim, a.rank);
  const from = checkedIndex('select', a.shape, at, index);
  return derived('select', a, 'part', (layout) => selected(layout, at, from));
}

/**
 * Returns the diagonal of two dimensions of one size. It takes the position of the first; the second is dropped. Shares
 * memory with `a`.
 */
export const jointDiagonal = (a: Tensor, first: number, second: number): Tensor =>
  derived('diagonal', a, 'part', (layout) => onDiagonal(layout, first, second));

/** Returns an index of dimension `dim`; a negative one counts from the end. Throws if it is out of range. */
export function checkedIndex(op: string, shape: Shape, dim: number, index: number): number {
  const size = shape[dim]!;
  checkInteger(op, 'an index', index);
  const at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) throw badIndex(op, index, dim, size);
  return at;
}

/** Returns a view with all elements of `a` in another order. */
export const reordered = (name: string, a: Tensor, change: (layout: Layout) => Layout): Tensor =>
  derived(name, a, 'permuted', change);

/** Returns a view of a part of `a`, recorded as one operation however many steps `change` takes. */
export const part = (name: string, a: Tensor, change: (layout: Layout) => Layout): Tensor =>
  derived(name, a, 'part', change);
