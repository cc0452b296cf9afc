// The methods that training loops call in each step, and views. PyTorch has options that do not exist here; `extra`,
// which is not part of the declared type, refuses them, so that they are not ignored.
import { refuseOptions } from '../../checks/options.ts';
import type { DType } from '../../core/dtype.ts';
import type { ArrayMethods } from '../../core/methods/arrays.ts';
import type { FunctionMethods } from '../../core/methods/functions.ts';
import type { ProductMethods } from '../../core/methods/products.ts';
import type { StatisticMethods } from '../../core/methods/statistics.ts';
import type {
  Dims,
  GeluOptions,
  NormOptions,
  ScatterReduction,
  ToOptions,
  VarianceOptions,
} from '../../core/op-options.ts';
import { rowsSymbol, type TensorHandle } from '../../core/protocol.ts';
import type { Shape } from '../../core/shape.ts';
import { type Index, type Operand, type Sorted, Tensor, type TensorMethods } from '../../core/tensor.ts';
import type { DeviceName } from '../../device/device.ts';
import { handleOf } from '../../device/handle.ts';
import * as ops from '../index.ts';
import { type Rows, rowsOf } from '../rows.ts';
import { addMethods } from './define.ts';

const methods: Omit<
  TensorMethods,
  keyof (ArrayMethods<Tensor> & FunctionMethods<Tensor> & ProductMethods<Tensor> & StatisticMethods<Tensor>)
> &
  ThisType<Tensor> = {
  add(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('add', extra);
    return ops.add(this, other);
  },
  sub(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('sub', extra);
    return ops.sub(this, other);
  },
  mul(other: Operand): Tensor {
    return ops.mul(this, other);
  },
  div(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('div', extra);
    return ops.div(this, other);
  },
  pow(other: Operand): Tensor {
    return ops.pow(this, other);
  },
  maximum(other: Operand): Tensor {
    return ops.maximum(this, other);
  },
  minimum(other: Operand): Tensor {
    return ops.minimum(this, other);
  },
  eq(other: Operand): Tensor {
    return ops.eq(this, other);
  },
  ne(other: Operand): Tensor {
    return ops.ne(this, other);
  },
  lt(other: Operand): Tensor {
    return ops.lt(this, other);
  },
  le(other: Operand): Tensor {
    return ops.le(this, other);
  },
  gt(other: Operand): Tensor {
    return ops.gt(this, other);
  },
  ge(other: Operand): Tensor {
    return ops.ge(this, other);
  },
  logicalAnd(other: Operand): Tensor {
    return ops.logicalAnd(this, other);
  },
  logicalOr(other: Operand): Tensor {
    return ops.logicalOr(this, other);
  },
  logicalXor(other: Operand): Tensor {
    return ops.logicalXor(this, other);
  },
  logicalNot(): Tensor {
    return ops.logicalNot(this);
  },
  neg(): Tensor {
    return ops.neg(this);
  },
  abs(): Tensor {
    return ops.abs(this);
  },
  sign(): Tensor {
    return ops.sign(this);
  },
  exp(): Tensor {
    return ops.exp(this);
  },
  log(): Tensor {
    return ops.log(this);
  },
  sqrt(): Tensor {
    return ops.sqrt(this);
  },
  rsqrt(): Tensor {
    return ops.rsqrt(this);
  },
  square(): Tensor {
    return ops.square(this);
  },
  sin(): Tensor {
    return ops.sin(this);
  },
  cos(): Tensor {
    return ops.cos(this);
  },
  tanh(): Tensor {
    return ops.tanh(this);
  },
  sigmoid(): Tensor {
    return ops.sigmoid(this);
  },
  relu(): Tensor {
    return ops.relu(this);
  },
  erf(): Tensor {
    return ops.erf(this);
  },
  gelu(options?: GeluOptions): Tensor {
    return ops.gelu(this, options);
  },
  silu(): Tensor {
    return ops.silu(this);
  },
  floor(): Tensor {
    return ops.floor(this);
  },
  ceil(): Tensor {
    return ops.ceil(this);
  },
  round(extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('round', extra);
    return ops.round(this);
  },
  trunc(): Tensor {
    return ops.trunc(this);
  },
  clamp(low?: Operand | null, high?: Operand | null): Tensor {
    return ops.clamp(this, low, high);
  },
  maskedFill(mask: Tensor, value: Operand): Tensor {
    return ops.maskedFill(this, mask, value);
  },
  matmul(other: Tensor): Tensor {
    return ops.matmul(this, other);
  },
  at(...indices: readonly Index[]): Tensor {
    return ops.at(this, ...indices);
  },
  reshape(shape: Shape): Tensor {
    return ops.reshape(this, shape);
  },
  view(shape: Shape): Tensor {
    return ops.view(this, shape);
  },
  flatten(startDim = 0, endDim = -1): Tensor {
    return ops.flatten(this, startDim, endDim);
  },
  squeeze(dims?: Dims): Tensor {
    return ops.squeeze(this, dims);
  },
  unsqueeze(dim: number): Tensor {
    return ops.unsqueeze(this, dim);
  },
  transpose(dim0: number, dim1: number): Tensor {
    return ops.transpose(this, dim0, dim1);
  },
  t(): Tensor {
    return ops.t(this);
  },
  permute(dims: readonly number[]): Tensor {
    return ops.permute(this, dims);
  },
  expand(shape: Shape): Tensor {
    return ops.expand(this, shape);
  },
  narrow(dim: number, start: number, length: number): Tensor {
    return ops.narrow(this, dim, start, length);
  },
  select(dim: number, index: number): Tensor {
    return ops.select(this, dim, index);
  },
  split(sizes: number | readonly number[], dim = 0): Tensor[] {
    return ops.split(this, sizes, dim);
  },
  chunk(chunks: number, dim = 0): Tensor[] {
    return ops.chunk(this, chunks, dim);
  },
  unbind(dim = 0): Tensor[] {
    return ops.unbind(this, dim);
  },
  unflatten(dim: number, sizes: Shape): Tensor {
    return ops.unflatten(this, dim, sizes);
  },
  flip(dims: Dims): Tensor {
    return ops.flip(this, dims);
  },
  roll(shifts: Dims, dims?: Dims): Tensor {
    return ops.roll(this, shifts, dims);
  },
  repeat(counts: Shape): Tensor {
    return ops.repeat(this, counts);
  },
  sum(dims?: Dims, keepDim = false, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('sum', extra);
    return ops.sum(this, dims, keepDim);
  },
  mean(dims?: Dims, keepDim = false, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('mean', extra);
    return ops.mean(this, dims, keepDim);
  },
  prod(dims?: Dims, keepDim = false, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('prod', extra);
    return ops.prod(this, dims, keepDim);
  },
  max(dims?: Dims, keepDim = false): Tensor {
    return ops.max(this, dims, keepDim);
  },
  min(dims?: Dims, keepDim = false): Tensor {
    return ops.min(this, dims, keepDim);
  },
  any(dims?: Dims, keepDim = false): Tensor {
    return ops.any(this, dims, keepDim);
  },
  all(dims?: Dims, keepDim = false): Tensor {
    return ops.all(this, dims, keepDim);
  },
  variance(dims?: Dims, options?: VarianceOptions): Tensor {
    return ops.variance(this, dims, options);
  },
  std(dims?: Dims, options?: VarianceOptions): Tensor {
    return ops.std(this, dims, options);
  },
  norm(dims?: Dims, options?: NormOptions): Tensor {
    return ops.norm(this, dims, options);
  },
  argmax(dim?: number, keepDim = false): Tensor {
    return ops.argmax(this, dim, keepDim);
  },
  argmin(dim?: number, keepDim = false): Tensor {
    return ops.argmin(this, dim, keepDim);
  },
  logSumExp(dims: Dims, keepDim = false): Tensor {
    return ops.logSumExp(this, dims, keepDim);
  },
  softmax(dim = -1, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('softmax', extra);
    return ops.softmax(this, dim);
  },
  logSoftmax(dim = -1, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('logSoftmax', extra);
    return ops.logSoftmax(this, dim);
  },
  cumsum(dim: number, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('cumsum', extra);
    return ops.cumsum(this, dim);
  },
  sort(dim = -1, options: { readonly descending?: boolean } = {}): Sorted {
    return ops.sort(this, dim, options);
  },
  topk(k: number, dim = -1, options: { readonly largest?: boolean } = {}): Sorted {
    return ops.topk(this, k, dim, options);
  },
  tril(diagonal = 0): Tensor {
    return ops.tril(this, diagonal);
  },
  triu(diagonal = 0): Tensor {
    return ops.triu(this, diagonal);
  },
  gather(dim: number, index: Tensor): Tensor {
    return ops.gather(this, dim, index);
  },
  takeAlongDim(index: Tensor, dim?: number): Tensor {
    return ops.takeAlongDim(this, index, dim);
  },
  take(index: Tensor): Tensor {
    return ops.take(this, index);
  },
  scatter(dim: number, index: Tensor, source: Operand): Tensor {
    return ops.scatter(this, dim, index, source);
  },
  scatterAdd(dim: number, index: Tensor, source: Tensor): Tensor {
    return ops.scatterAdd(this, dim, index, source);
  },
  scatterReduce(
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: ScatterReduction,
    options?: ops.ScatterReduceOptions,
  ): Tensor {
    return ops.scatterReduce(this, dim, index, source, reduce, options);
  },
  indexAdd(dim: number, index: Tensor, source: Tensor, options?: ops.IndexAddOptions): Tensor {
    return ops.indexAdd(this, dim, index, source, options);
  },
  indexCopy(dim: number, index: Tensor, source: Tensor): Tensor {
    return ops.indexCopy(this, dim, index, source);
  },
  indexFill(dim: number, index: Tensor, value: Operand): Tensor {
    return ops.indexFill(this, dim, index, value);
  },
  indexPut(indices: readonly Index[], values: Operand, options?: ops.PutOptions): Tensor {
    return ops.indexPut(this, indices, values, options);
  },
  set(indices: readonly Index[], value: Operand, options?: ops.PutOptions): Tensor {
    return ops.set(this, indices, value, options);
  },
  maskedSelect(mask: Tensor): Tensor {
    return ops.maskedSelect(this, mask);
  },
  nonzero(): Tensor {
    return ops.nonzero(this);
  },
  indexSelect(dim: number, index: Tensor): Tensor {
    return ops.indexSelect(this, dim, index);
  },
  clone(): Tensor {
    return ops.clone(this);
  },
  contiguous(): Tensor {
    return ops.contiguous(this);
  },
  to(target: DType | DeviceName, options?: ToOptions): Tensor {
    return ops.to(this, target, options);
  },
  pinMemory(): Tensor {
    return ops.pinMemory(this);
  },
  handle(): TensorHandle {
    return handleOf(this);
  },
  copy_(other: Operand): Tensor {
    return ops.copy_(this, other);
  },
  add_(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('add_', extra);
    return ops.add_(this, other);
  },
  sub_(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('sub_', extra);
    return ops.sub_(this, other);
  },
  mul_(other: Operand): Tensor {
    return ops.mul_(this, other);
  },
  div_(other: Operand, extra?: unknown): Tensor {
    if (extra !== undefined) refuseOptions('div_', extra);
    return ops.div_(this, other);
  },
  fill_(value: number): Tensor {
    return ops.fill_(this, value);
  },
  zero_(): Tensor {
    return ops.zero_(this);
  },
};

addMethods(methods);
Object.defineProperty(Tensor.prototype, rowsSymbol, {
  value(this: Tensor): Rows {
    return rowsOf(this);
  },
});
