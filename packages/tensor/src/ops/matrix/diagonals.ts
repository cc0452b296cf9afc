// Diagonals and triangles of matrices, and matrices that are made of them.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { notTensors } from '../../checks/argument-errors.ts';
import { checkInteger } from '../../checks/arguments.ts';
import { sameDimTwice } from '../../checks/array-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, checkValue, nonNegativeInteger, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { resultType } from '../../core/dtype.ts';
import { checkListed, hostNumbers } from '../../core/host-numbers.ts';
import { denseLayout, type Layout } from '../../core/layout.ts';
import type { Storage } from '../../core/memory/storage.ts';
import { checkedDim } from '../../core/shape.ts';
import { empty, Tensor } from '../../core/tensor.ts';
import type { DeviceName } from '../../device/device.ts';
import { needsRank } from '../../errors.ts';
import { clone, requireNumbers, requireTensor, to } from '../elementwise/convert.ts';
import { positionsOf } from '../indexing/positions.ts';
import { jointDevice } from '../joint-device.ts';
import { sum } from '../reduce/reduce.ts';
import { cat } from '../shape/join.ts';
import { atleast2d } from '../shape/stacks.ts';
import { flatten, part } from '../shape/views.ts';

/** Returns the layout of a diagonal, which becomes the last dimension. `offset` > 0 is above the main diagonal. */
function diagonalOf(
  { shape, strides, offset: start }: Layout,
  offset: number,
  dim1: number,
  dim2: number,
): Layout {
  const [rows, cols] = [shape[dim1]!, shape[dim2]!];
  const size = Math.max(0, Math.min(rows + Math.min(0, offset), cols - Math.max(0, offset)));
  const kept = shape.map((_, d) => d).filter((d) => d !== dim1 && d !== dim2);
  const before = offset >= 0 ? offset * strides[dim2]! : -offset * strides[dim1]!;
  return {
    shape: [...kept.map((d) => shape[d]!), size],
    strides: [...kept.map((d) => strides[d]!), strides[dim1]! + strides[dim2]!],
    offset: size === 0 ? start : start + before,
  };
}

function twoDims(op: string, dim1: number, dim2: number, rank: number): [number, number] {
  const [first, second] = [checkedDim(op, dim1, rank), checkedDim(op, dim2, rank)];
  if (first === second) throw sameDimTwice(op, dim1, dim2);
  return [first, second];
}

/**
 * Returns the diagonals of matrices, which two dimensions make: these are dropped, and the diagonal is a new last one.
 * `offset` counts diagonals above the main one, or below it if it is negative. Shares memory with `a`.
 */
export function diagonal(a: Tensor, offset = 0, dim1 = 0, dim2 = 1): Tensor {
  requireTensor('diagonal', a);
  checkInteger('diagonal', 'offset', offset);
  const [first, second] = twoDims('diagonal', dim1, dim2, a.rank);
  return part('diagonal', a, (layout) => diagonalOf(layout, offset, first, second));
}

/**
 * Returns matrices of zeros, with the last dimension of `a` on a diagonal. The matrices are the dimensions `dim1` and
 * `dim2` of the result; `offset` counts as for diagonal().
 */
export function diagEmbed(a: Tensor, offset = 0, dim1 = -2, dim2 = -1): Tensor {
  requireTensor('diagEmbed', a);
  checkInteger('diagEmbed', 'offset', offset);
  if (a.rank === 0) throw needsRank('diagEmbed', 'at least 1', a.shape);
  const [first, second] = twoDims('diagEmbed', dim1, dim2, a.rank + 1);
  const size = a.shape.at(-1)! + Math.abs(offset);
  const shape = a.shape.slice(0, -1);
  for (const dim of [first, second].sort((x, y) => x - y)) shape.splice(dim, 0, size);
  const diagonalIn = (storage: Storage): Strided => {
    const layout = diagonalOf(denseLayout(shape), offset, first, second);
    return { memory: storage.memory, offset: storage.dense.offset + layout.offset, strides: layout.strides };
  };
  const out = empty(a.dtype, shape, a.device);
  kernels().copy(shape, out.strided, 0);
  if (a.count > 0) kernels().copy(a.shape, diagonalIn(out.storage), a.strided);
  if (!isRecording(a)) return out;
  const target = a.target!;
  const own = a.shape;
  return record('diagEmbed', out, [target], [], (grad, graph) => {
    if (graph) {
      graphOf(graph).send(target, diagonal(graphOf(graph).grad, offset, first, second));
      return;
    }
    const into = target.begin();
    if (target.count > 0) kernels().copy(own, into.dense, diagonalIn(grad));
    target.end(into);
  });
}

/** Returns a copy of a diagonal of a matrix, or a matrix with a vector on its diagonal. */
export function diag(a: Tensor, offset = 0): Tensor {
  requireTensor('diag', a);
  if (a.rank !== 1 && a.rank !== 2) throw needsRank('diag', '1 or 2', a.shape);
  return a.rank === 1 ? diagEmbed(a, offset) : scope(() => clone(diagonal(a, offset)));
}

/** Returns a matrix with all elements of `a` on a diagonal. */
export function diagflat(a: Tensor, offset = 0): Tensor {
  requireTensor('diagflat', a);
  return scope(() => diagEmbed(flatten(a), offset));
}

/** Sums the diagonal of a matrix. Integers are summed in int64. */
export function trace(a: Tensor): Tensor {
  requireTensor('trace', a);
  if (a.rank !== 2) throw needsRank('trace', 2, a.shape);
  requireNumbers('trace', a);
  return scope(() => sum(diagonal(a)));
}

/** Options of trilIndices() and triuIndices(). */
export interface TriangleIndexOptions {
  /** Default int64. */
  readonly dtype?: 'int32' | 'int64';
  /** Default: 'cpu'. */
  readonly device?: DeviceName;
}

const indexOptions = optionChecks<TriangleIndexOptions>({ dtype: oneOf('int32', 'int64'), device: anything });

function triangleIndices(
  op: string,
  rows: number,
  cols: number,
  offset: number,
  options: TriangleIndexOptions,
  isInside: (above: number) => boolean,
): Tensor {
  checkOptions(op, options, indexOptions);
  checkValue(`${op}: rows`, rows, nonNegativeInteger);
  checkValue(`${op}: cols`, cols, nonNegativeInteger);
  checkInteger(op, 'offset', offset);
  checkListed(rows * cols, 2 ** 27);
  const all = rows * cols;
  const rowOf = (at: number): number => Math.floor(at / cols);
  const isTaken = (at: number): boolean => isInside((at % cols) - rowOf(at) - offset);
  let count = 0;
  for (let at = 0; at < all; at++) count += Number(isTaken(at));
  const found = hostNumbers(2 * count);
  for (let at = 0, i = 0; i < count; at++) {
    if (!isTaken(at)) continue;
    found[i] = rowOf(at);
    found[count + i++] = at % cols;
  }
  const { dtype = 'int64', device = 'cpu' } = options;
  return scope(() => to(to(positionsOf(found, [2, count]), dtype), device));
}

/** Returns the positions on a diagonal and below it, row by row: [2, count], first the rows. `offset` as for tril(). */
export const trilIndices = (
  rows: number,
  cols: number,
  offset = 0,
  options: TriangleIndexOptions = {},
): Tensor => triangleIndices('trilIndices', rows, cols, offset, options, (above) => above <= 0);

/** Returns the positions on a diagonal and above it, row by row: [2, count], first the rows. `offset` as for triu(). */
export const triuIndices = (
  rows: number,
  cols: number,
  offset = 0,
  options: TriangleIndexOptions = {},
): Tensor => triangleIndices('triuIndices', rows, cols, offset, options, (above) => above >= 0);

/** Puts matrices along the diagonal of one, with zeros elsewhere, in their joint dtype. A vector counts as a row. */
export function blockDiag(...tensors: readonly Tensor[]): Tensor {
  const op = 'blockDiag';
  if (!tensors.every((tensor) => tensor instanceof Tensor)) throw notTensors(op, tensors);
  for (const { rank, shape } of tensors) if (rank > 2) throw needsRank(op, '0, 1 or 2', shape);
  const [first] = tensors;
  if (first === undefined) return zeros([1, 0]);
  for (const tensor of tensors) jointDevice(op, first, tensor);
  const { device } = first;
  return scope(() => {
    const dtype = resultType(...tensors);
    const blocks = tensors.map((tensor) => to(atleast2d(tensor), dtype));
    const width = blocks.reduce((total, { shape }) => total + shape[1]!, 0);
    let before = 0;
    const rows = blocks.map((block) => {
      const [height, own] = block.shape as [number, number];
      before += own;
      const nothing = (size: number): Tensor => zeros([height, size], { dtype, device });
      return cat([nothing(before - own), block, nothing(width - before)], 1);
    });
    return cat(rows, 0);
  });
}
