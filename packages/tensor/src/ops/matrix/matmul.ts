// Matrix products. A matrix may be stored row by row or column by column, with any distance between its rows, so that
// transposes and slices are multiplied without a copy. The kernel can add to its output, so that gradients are
// accumulated without a temporary.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import type { GradTarget } from '../../autograd/target.ts';
import { kernels } from '../../backends/index.ts';
import type { Strided } from '../../backends/operands.ts';
import { isFloat } from '../../core/dtype.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate } from '../../core/memory/storage.ts';
import {
  broadcastShapes,
  broadcastStrides,
  countOf,
  rowsOf,
  type Shape,
  sameShape,
  stridesOf,
} from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badMatmul, mixedDtypes } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireFactors, to } from '../elementwise/convert.ts';
import { shareReduced } from '../gradient.ts';
import { jointDevice } from '../joint-device.ts';
import { reshape, squeeze, unsqueeze } from '../shape/views.ts';
import { integerMatmul } from './integer-matmul.ts';

/** A batch of matrices in memory. */
export interface Matrices {
  readonly memory: Strided['memory'];
  readonly offset: number;
  /** From one matrix to the next, by dimension of the batch. */
  readonly batch: readonly number[];
  /** From one stored row to the next. */
  readonly step: number;
  /** Whether the stored rows are the columns of the matrix. */
  readonly isTransposed: boolean;
}

export const turned = ({ memory, offset, batch, step, isTransposed }: Matrices): Matrices => ({
  memory,
  offset,
  batch,
  step,
  isTransposed: !isTransposed,
});

/**
 * Returns the last two dimensions as matrices, with leading dimensions broadcast to `batch`; null if neither
 * rows nor columns are dense.
 */
export function matricesOf(a: Tensor, batch: Shape): Matrices | null {
  const { rank, shape, strides } = a;
  const rows = shape[rank - 2]!;
  const cols = shape[rank - 1]!;
  const rowStride = strides[rank - 2]!;
  const colStride = strides[rank - 1]!;
  const isByRow = (colStride === 1 || cols === 1) && (rowStride >= cols || rows === 1);
  const isByColumn = (rowStride === 1 || rows === 1) && (colStride >= rows || cols === 1);
  if (!isByRow && !isByColumn) return null;
  const { memory, offset } = a.strided;
  const step = isByRow ? (rows === 1 ? cols : rowStride) : cols === 1 ? rows : colStride;
  const own = batch.length === 0 ? none : broadcastStrides(shape.slice(0, -2), strides.slice(0, -2), batch);
  return { memory, offset, batch: own, step, isTransposed: !isByRow };
}

const none: readonly number[] = [];

/** Returns dense matrices of this shape. */
export function denseMatrices({ memory, offset }: Strided, shape: Shape): Matrices {
  const batch = shape.length === 2 ? none : stridesOf(shape).slice(0, -2);
  return { memory, offset, batch, step: shape[shape.length - 1]!, isTransposed: false };
}

/**
 * Computes out[..., m, n] (+)= a[..., m, k] · b[..., k, n]. out is dense; the strides of a and b broadcast them to its
 * batch.
 */
export function multiply(
  batch: Shape,
  out: Strided,
  a: Matrices,
  b: Matrices,
  m: number,
  n: number,
  k: number,
  accumulate: boolean,
): void {
  const count = countOf(batch) * m * n;
  if (count === 0) return;
  if (k === 0) {
    if (!accumulate) kernels().copy([count], out, 0);
    return;
  }
  const strides = batch.length === 0 ? none : stridesOf([...batch, m, n]).slice(0, -2);
  const operand = ({ memory, offset, batch: own }: Matrices): Strided => ({ memory, offset, strides: own });
  kernels().matmul(batch, withStrides(out, strides), operand(a), operand(b), {
    m,
    n,
    k,
    aStep: a.step,
    bStep: b.step,
    transA: a.isTransposed,
    transB: b.isTransposed,
    accumulate,
  });
}

/** Sends a gradient of matrices [..., rows, cols] to an input whose batch may have been broadcast. */
function sendMatrices(
  target: GradTarget,
  batch: Shape,
  inputShape: Shape,
  left: Matrices,
  right: Matrices,
  inner: number,
): void {
  const [rows, cols] = inputShape.slice(-2) as [number, number];
  const shape = [...batch, rows, cols];
  if (sameShape(shape, inputShape)) {
    multiply(batch, target.open(), left, right, rows, cols, inner, target.isFilled);
    target.close();
    return;
  }
  const whole = allocate(target.dtype, countOf(shape), target.device);
  multiply(batch, whole.dense, left, right, rows, cols, inner, false);
  shareReduced(target, whole, shape, inputShape);
  whole.release();
}

/** Computes [..., m, k] · [..., k, n]. Leading dimensions are broadcast. */
function batched(a: Tensor, b: Tensor): Tensor {
  if (!isFloat(a.dtype)) return integerMatmul(a, b);
  const m = a.shape[a.rank - 2]!;
  const k = a.shape[a.rank - 1]!;
  const n = b.shape[b.rank - 1]!;
  const isPlain = a.rank === 2 && b.rank === 2;
  const batch = isPlain ? none : broadcastShapes('matmul', a.shape.slice(0, -2), b.shape.slice(0, -2));
  const left = matricesOf(a, batch);
  const right = matricesOf(b, batch);
  if (left === null || right === null) {
    const copies = [left ? a : contiguous(a), right ? b : contiguous(b)] as const;
    const out = batched(...copies);
    for (const [i, tensor] of [a, b].entries()) if (copies[i] !== tensor) copies[i]!.dispose();
    return out;
  }
  const out = empty(a.dtype, isPlain ? [m, n] : [...batch, m, n], jointDevice('matmul', a, b));
  multiply(batch, out.strided, left, right, m, n, k, false);
  return isRecording(a, b) ? recorded(out, a, b, batch, left, right) : out;
}

// A separate function, so that the variables which its closure captures are allocated only when it runs.
function recorded(out: Tensor, a: Tensor, b: Tensor, batch: Shape, left: Matrices, right: Matrices): Tensor {
  const [toA, toB, aShape, bShape] = [a.target, b.target, a.shape, b.shape];
  const [forA, forB] = [toA && turned(right), toB && turned(left)];
  const saved = [...(toA ? [b.storage] : []), ...(toB ? [a.storage] : [])];
  const m = aShape[aShape.length - 2]!;
  const n = bShape[bShape.length - 1]!;
  const [aStrided, bStrided] = [a.strided, b.strided];
  return record('matmul', out, [toA, toB], saved, (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      if (toB) own.send(toB, matmul(own.saved(aStrided, aShape, toA).transpose(-1, -2), own.grad), bShape);
      if (toA) own.send(toA, matmul(own.grad, own.saved(bStrided, bShape, toB).transpose(-1, -2)), aShape);
      return;
    }
    const g = denseMatrices(grad.dense, [...batch, m, n]);
    if (toB) sendMatrices(toB, batch, bShape, forB!, g, m);
    if (toA) sendMatrices(toA, batch, aShape, g, forA!, n);
  });
}

/**
 * Multiplies matrices, which are the last two dimensions; leading dimensions are broadcast. A vector counts as a row on
 * the left and as a column on the right. Integers wrap around. Accepts bool only if no elements are multiplied.
 */
export function matmul(a: Tensor, b: Tensor): Tensor {
  const lowered = recast('low', [a, b], (x, y) => matmul(x!, y!));
  if (lowered) return lowered;
  requireFactors('matmul', a, b);
  if (a.dtype !== b.dtype) throw mixedDtypes('matmul', a.dtype, b.dtype);
  const isInnerEqual = a.rank > 0 && b.rank > 0 && a.shape[a.rank - 1] === b.shape[Math.max(0, b.rank - 2)];
  if (!isInnerEqual) throw badMatmul(a.shape, b.shape);
  if (needsFloat32OnCpu(a)) {
    const wide = to(b, 'float32');
    const out = inFloat32(a, (x) => matmul(x, wide));
    wide.dispose();
    return out;
  }
  if (a.rank === 1)
    return through(unsqueeze(a, 0), (row) =>
      through(matmul(row, b), (out) => squeeze(out, -2 + Number(b.rank === 1))),
    );
  if (b.rank === 1)
    return through(unsqueeze(b, 1), (column) => through(matmul(a, column), (out) => squeeze(out, -1)));
  // Many matrices times one matrix are one tall matrix times it.
  if (a.rank > 2 && b.rank === 2 && a.isContiguous) {
    const rows = rowsOf(a.shape);
    return through(reshape(a, [rows, a.shape[a.rank - 1]!]), (tall) =>
      through(batched(tall, b), (out) => reshape(out, [...a.shape.slice(0, -1), b.shape[1]!])),
    );
  }
  return batched(a, b);
}

/** Returns op(a), and disposes `a` unless it is the result. */
function through(a: Tensor, op: (a: Tensor) => Tensor): Tensor {
  const out = op(a);
  if (out !== a) a.dispose();
  return out;
}
