// The tensor that users see: methods are thin; what they do is in ops/.

import type { Strided } from '../backends/operands.ts';
import { refuseOptions } from '../checks/options.ts';
import type { Device, DeviceName } from '../device/device.ts';
import { handleOf } from '../device/handle.ts';
import * as ops from '../ops/index.ts';
import { track } from './context.ts';
import type { DType } from './dtype.ts';
import { isDense, type Layout } from './layout.ts';
import type { TensorHandle } from './protocol.ts';
import { countOf, type Shape } from './shape.ts';
import { allocate, type Storage } from './storage.ts';
import { GradTensor } from './tensor-grad.ts';

export type Operand = Tensor | number;

/**
 * Made by tensor(), zeros() and operations. Where PyTorch has options that are not here, `extra` is no part
 * of the type and refuses them, so that they are not ignored.
 */
export class Tensor extends GradTensor {
  protected override over(storage: Storage): Tensor {
    return new Tensor(storage, this.shape);
  }

  /** The same memory without a graph. */
  detach(): Tensor {
    return viewAs(this, this.shape, this.strided);
  }

  add(other: Operand): Tensor;
  add(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('add', extra);
    return ops.add(this, other);
  }
  sub(other: Operand): Tensor;
  sub(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('sub', extra);
    return ops.sub(this, other);
  }
  mul(other: Operand): Tensor {
    return ops.mul(this, other);
  }
  div(other: Operand): Tensor;
  div(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('div', extra);
    return ops.div(this, other);
  }
  pow(other: Operand): Tensor {
    return ops.pow(this, other);
  }
  maximum(other: Operand): Tensor {
    return ops.maximum(this, other);
  }
  minimum(other: Operand): Tensor {
    return ops.minimum(this, other);
  }
  eq(other: Operand): Tensor {
    return ops.eq(this, other);
  }
  ne(other: Operand): Tensor {
    return ops.ne(this, other);
  }
  lt(other: Operand): Tensor {
    return ops.lt(this, other);
  }
  le(other: Operand): Tensor {
    return ops.le(this, other);
  }
  gt(other: Operand): Tensor {
    return ops.gt(this, other);
  }
  ge(other: Operand): Tensor {
    return ops.ge(this, other);
  }
  logicalAnd(other: Operand): Tensor {
    return ops.logicalAnd(this, other);
  }
  logicalOr(other: Operand): Tensor {
    return ops.logicalOr(this, other);
  }
  logicalXor(other: Operand): Tensor {
    return ops.logicalXor(this, other);
  }
  logicalNot(): Tensor {
    return ops.logicalNot(this);
  }
  neg(): Tensor {
    return ops.neg(this);
  }
  abs(): Tensor {
    return ops.abs(this);
  }
  sign(): Tensor {
    return ops.sign(this);
  }
  exp(): Tensor {
    return ops.exp(this);
  }
  log(): Tensor {
    return ops.log(this);
  }
  sqrt(): Tensor {
    return ops.sqrt(this);
  }
  rsqrt(): Tensor {
    return ops.rsqrt(this);
  }
  square(): Tensor {
    return ops.square(this);
  }
  sin(): Tensor {
    return ops.sin(this);
  }
  cos(): Tensor {
    return ops.cos(this);
  }
  tanh(): Tensor {
    return ops.tanh(this);
  }
  sigmoid(): Tensor {
    return ops.sigmoid(this);
  }
  relu(): Tensor {
    return ops.relu(this);
  }
  erf(): Tensor {
    return ops.erf(this);
  }
  gelu(options?: ops.GeluOptions): Tensor {
    return ops.gelu(this, options);
  }
  silu(): Tensor {
    return ops.silu(this);
  }
  floor(): Tensor {
    return ops.floor(this);
  }
  ceil(): Tensor {
    return ops.ceil(this);
  }
  round(): Tensor;
  round(extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('round', extra);
    return ops.round(this);
  }
  trunc(): Tensor {
    return ops.trunc(this);
  }
  clamp(low?: Operand | null, high?: Operand | null): Tensor {
    return ops.clamp(this, low, high);
  }
  maskedFill(mask: Tensor, value: Operand): Tensor {
    return ops.maskedFill(this, mask, value);
  }
  matmul(other: Tensor): Tensor {
    return ops.matmul(this, other);
  }
  /** Elements and parts by position, sharing memory: x.at(0), x.at(':', [2, 5]), x.at('...', -1), x.at(null). */
  at(...indices: readonly ops.Index[]): Tensor {
    return ops.at(this, ...indices);
  }
  reshape(shape: Shape): Tensor {
    return ops.reshape(this, shape);
  }
  view(shape: Shape): Tensor {
    return ops.view(this, shape);
  }
  flatten(startDim = 0, endDim = -1): Tensor {
    return ops.flatten(this, startDim, endDim);
  }
  squeeze(dims?: ops.Dims): Tensor {
    return ops.squeeze(this, dims);
  }
  unsqueeze(dim: number): Tensor {
    return ops.unsqueeze(this, dim);
  }
  transpose(dim0: number, dim1: number): Tensor {
    return ops.transpose(this, dim0, dim1);
  }
  t(): Tensor {
    return ops.t(this);
  }
  permute(dims: readonly number[]): Tensor {
    return ops.permute(this, dims);
  }
  expand(shape: Shape): Tensor {
    return ops.expand(this, shape);
  }
  narrow(dim: number, start: number, length: number): Tensor {
    return ops.narrow(this, dim, start, length);
  }
  select(dim: number, index: number): Tensor {
    return ops.select(this, dim, index);
  }
  split(sizes: number | readonly number[], dim = 0): Tensor[] {
    return ops.split(this, sizes, dim);
  }
  chunk(chunks: number, dim = 0): Tensor[] {
    return ops.chunk(this, chunks, dim);
  }
  unbind(dim = 0): Tensor[] {
    return ops.unbind(this, dim);
  }
  unflatten(dim: number, sizes: Shape): Tensor {
    return ops.unflatten(this, dim, sizes);
  }
  flip(dims: ops.Dims): Tensor {
    return ops.flip(this, dims);
  }
  roll(shifts: ops.Dims, dims?: ops.Dims): Tensor {
    return ops.roll(this, shifts, dims);
  }
  repeat(counts: Shape): Tensor {
    return ops.repeat(this, counts);
  }
  sum(dims?: ops.Dims, keepDim?: boolean): Tensor;
  sum(dims?: ops.Dims, keepDim = false, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('sum', extra);
    return ops.sum(this, dims, keepDim);
  }
  mean(dims?: ops.Dims, keepDim?: boolean): Tensor;
  mean(dims?: ops.Dims, keepDim = false, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('mean', extra);
    return ops.mean(this, dims, keepDim);
  }
  prod(dims?: ops.Dims, keepDim?: boolean): Tensor;
  prod(dims?: ops.Dims, keepDim = false, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('prod', extra);
    return ops.prod(this, dims, keepDim);
  }
  max(dims?: ops.Dims, keepDim = false): Tensor {
    return ops.max(this, dims, keepDim);
  }
  min(dims?: ops.Dims, keepDim = false): Tensor {
    return ops.min(this, dims, keepDim);
  }
  any(dims?: ops.Dims, keepDim = false): Tensor {
    return ops.any(this, dims, keepDim);
  }
  all(dims?: ops.Dims, keepDim = false): Tensor {
    return ops.all(this, dims, keepDim);
  }
  variance(dims?: ops.Dims, options?: ops.VarianceOptions): Tensor {
    return ops.variance(this, dims, options);
  }
  std(dims?: ops.Dims, options?: ops.VarianceOptions): Tensor {
    return ops.std(this, dims, options);
  }
  norm(dims?: ops.Dims, options?: ops.NormOptions): Tensor {
    return ops.norm(this, dims, options);
  }
  argmax(dim?: number, keepDim = false): Tensor {
    return ops.argmax(this, dim, keepDim);
  }
  argmin(dim?: number, keepDim = false): Tensor {
    return ops.argmin(this, dim, keepDim);
  }
  logSumExp(dims: ops.Dims, keepDim = false): Tensor {
    return ops.logSumExp(this, dims, keepDim);
  }
  softmax(dim?: number): Tensor;
  softmax(dim = -1, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('softmax', extra);
    return ops.softmax(this, dim);
  }
  logSoftmax(dim?: number): Tensor;
  logSoftmax(dim = -1, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('logSoftmax', extra);
    return ops.logSoftmax(this, dim);
  }
  cumsum(dim: number): Tensor;
  cumsum(dim: number, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('cumsum', extra);
    return ops.cumsum(this, dim);
  }
  sort(dim = -1, options: { readonly descending?: boolean } = {}): ops.Sorted {
    return ops.sort(this, dim, options);
  }
  topk(k: number, dim = -1, options: { readonly largest?: boolean } = {}): ops.Sorted {
    return ops.topk(this, k, dim, options);
  }
  tril(diagonal = 0): Tensor {
    return ops.tril(this, diagonal);
  }
  triu(diagonal = 0): Tensor {
    return ops.triu(this, diagonal);
  }
  gather(dim: number, index: Tensor): Tensor {
    return ops.gather(this, dim, index);
  }
  scatterAdd(dim: number, index: Tensor, source: Tensor): Tensor {
    return ops.scatterAdd(this, dim, index, source);
  }
  indexSelect(dim: number, index: Tensor): Tensor {
    return ops.indexSelect(this, dim, index);
  }
  /** A copy in memory of its own; the gradient passes through. */
  clone(): Tensor {
    return ops.clone(this);
  }
  /** This tensor if it is contiguous, else a copy. */
  contiguous(): Tensor {
    return ops.contiguous(this);
  }
  /** A copy in another dtype, or this tensor if it has it. Floats are cut towards zero. */
  to(target: DType | DeviceName, options?: ops.ToOptions): Tensor {
    return ops.to(this, target, options);
  }
  /**
   * A copy in pinned host memory, or this tensor if it lies there. From it `to('cuda', { nonBlocking: true })` only
   * starts a copy. Throws ERR_TENSOR_DEVICE where there is no CUDA device.
   */
  pinMemory(): Tensor {
    return ops.pinMemory(this);
  }
  /**
   * The tensor for another library, without a copy; `fromHandle` takes such a handle. The memory stays until
   * `release()` is called, or until the collector finds that nobody holds the handle's `owner`. Not for
   * tensors that require a gradient.
   */
  handle(): TensorHandle {
    return handleOf(this);
  }
  /** In place; not recorded. */
  copy_(other: Operand): Tensor {
    return ops.copy_(this, other);
  }
  add_(other: Operand): Tensor;
  add_(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('add_', extra);
    return ops.add_(this, other);
  }
  sub_(other: Operand): Tensor;
  sub_(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('sub_', extra);
    return ops.sub_(this, other);
  }
  mul_(other: Operand): Tensor {
    return ops.mul_(this, other);
  }
  div_(other: Operand): Tensor;
  div_(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('div_', extra);
    return ops.div_(this, other);
  }
  fill_(value: number): Tensor {
    return ops.fill_(this, value);
  }
  zero_(): Tensor {
    return ops.zero_(this);
  }
}

/** Internal: a tensor that belongs to the scope that is open now. Takes over one reference of `storage`. */
export function created(storage: Storage, shape: Shape, strided: Strided = storage.dense): Tensor {
  const tensor = new Tensor(storage, shape, strided);
  track(tensor);
  return tensor;
}

/** Internal: a tensor with memory that nobody has written yet. */
export function empty(dtype: DType, shape: Shape, device: Device = 'cpu'): Tensor {
  return created(allocate(dtype, countOf(shape), device), shape);
}

/** Internal: another layout over the same memory. */
export function viewOf(a: Tensor, layout: Layout): Tensor {
  const { storage } = a;
  // Where nothing lies is behind the end of the memory, which kernels refuse.
  if (countOf(layout.shape) === 0) return viewAs(a, layout.shape, storage.dense);
  const strides = isDense(layout) ? null : layout.strides;
  const strided = { memory: storage.memory, offset: layout.offset, strides };
  return viewAs(a, layout.shape, strides === null && layout.offset === 0 ? storage.dense : strided);
}

/** Internal: the same memory under another shape, which the strides fit. */
export function viewAs(a: Tensor, shape: Shape, strided: Strided): Tensor {
  const tensor = new Tensor(a.storage.retain(), shape, strided);
  track(tensor);
  return tensor;
}
