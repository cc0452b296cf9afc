// The tensor class of the public API. Its operations are declared here and implemented in ops/methods/, which calls
// ops/ and which every entry of the package imports. So operations can import this file, and it imports none of them.
import type { Strided } from '../backends/operands.ts';
import type { Device, DeviceName } from '../device/device.ts';
import { track } from './context.ts';
import type { DType } from './dtype.ts';
import { isDense, type Layout } from './layout.ts';
import { allocate, type Storage } from './memory/storage.ts';
import type { ArrayMethods } from './methods/arrays.ts';
import type { FunctionMethods } from './methods/functions.ts';
import type { InPlaceMethods } from './methods/in-place.ts';
import type { ProductMethods } from './methods/products.ts';
import type { StatisticMethods } from './methods/statistics.ts';
import type {
  Dims,
  GeluOptions,
  NormOptions,
  ScatterReduction,
  ToOptions,
  VarianceOptions,
  ViewIndex,
} from './op-options.ts';
import type { Autograd, differentiableSymbol, TensorHandle } from './protocol.ts';
import { countOf, type Shape } from './shape.ts';
import { GradTensor } from './tensor-grad.ts';

/** An operand of an elementwise operation: a tensor, or a number for all elements. */
export type Operand = Tensor | number;

/**
 * One entry of x.at(…): an index that makes a view, int32 or int64 positions in a tensor (negative ones count from the
 * end), or a mask of bool, which takes as many dimensions as it has.
 */
export type Index = ViewIndex | Tensor;

/** The two results of sort() and topk(). */
export interface Sorted {
  /** The elements in order. */
  readonly values: Tensor;
  /** int64: where each value stood along the dimension. */
  readonly indices: Tensor;
}

/**
 * The operations of a tensor. Names that end with an underscore change the tensor; the others return new tensors,
 * views, or the tensor itself where nothing is to be done.
 */
export interface TensorMethods
  extends ArrayMethods<Tensor>,
    FunctionMethods<Tensor>,
    ProductMethods<Tensor>,
    StatisticMethods<Tensor> {
  add(other: Operand): Tensor;
  sub(other: Operand): Tensor;
  mul(other: Operand): Tensor;
  div(other: Operand): Tensor;
  pow(other: Operand): Tensor;
  maximum(other: Operand): Tensor;
  minimum(other: Operand): Tensor;
  eq(other: Operand): Tensor;
  ne(other: Operand): Tensor;
  lt(other: Operand): Tensor;
  le(other: Operand): Tensor;
  gt(other: Operand): Tensor;
  ge(other: Operand): Tensor;
  logicalAnd(other: Operand): Tensor;
  logicalOr(other: Operand): Tensor;
  logicalXor(other: Operand): Tensor;
  logicalNot(): Tensor;
  neg(): Tensor;
  abs(): Tensor;
  sign(): Tensor;
  exp(): Tensor;
  log(): Tensor;
  sqrt(): Tensor;
  rsqrt(): Tensor;
  square(): Tensor;
  sin(): Tensor;
  cos(): Tensor;
  tanh(): Tensor;
  sigmoid(): Tensor;
  relu(): Tensor;
  erf(): Tensor;
  gelu(options?: GeluOptions): Tensor;
  silu(): Tensor;
  floor(): Tensor;
  ceil(): Tensor;
  round(): Tensor;
  trunc(): Tensor;
  clamp(low?: Operand | null, high?: Operand | null): Tensor;
  maskedFill(mask: Tensor, value: Operand): Tensor;
  matmul(other: Tensor): Tensor;
  /**
   * Elements and parts by position: x.at(0), x.at(':', [2, 5]), x.at('...', -1) and x.at(null) share memory; with
   * tensors of positions or of bool it is a copy.
   */
  at(...indices: readonly Index[]): Tensor;
  reshape(shape: Shape): Tensor;
  view(shape: Shape): Tensor;
  flatten(startDim?: number, endDim?: number): Tensor;
  squeeze(dims?: Dims): Tensor;
  unsqueeze(dim: number): Tensor;
  transpose(dim0: number, dim1: number): Tensor;
  t(): Tensor;
  permute(dims: readonly number[]): Tensor;
  expand(shape: Shape): Tensor;
  narrow(dim: number, start: number, length: number): Tensor;
  select(dim: number, index: number): Tensor;
  split(sizes: number | readonly number[], dim?: number): Tensor[];
  chunk(chunks: number, dim?: number): Tensor[];
  unbind(dim?: number): Tensor[];
  unflatten(dim: number, sizes: Shape): Tensor;
  flip(dims: Dims): Tensor;
  roll(shifts: Dims, dims?: Dims): Tensor;
  repeat(counts: Shape): Tensor;
  sum(dims?: Dims, keepDim?: boolean): Tensor;
  mean(dims?: Dims, keepDim?: boolean): Tensor;
  prod(dims?: Dims, keepDim?: boolean): Tensor;
  max(dims?: Dims, keepDim?: boolean): Tensor;
  min(dims?: Dims, keepDim?: boolean): Tensor;
  any(dims?: Dims, keepDim?: boolean): Tensor;
  all(dims?: Dims, keepDim?: boolean): Tensor;
  variance(dims?: Dims, options?: VarianceOptions): Tensor;
  std(dims?: Dims, options?: VarianceOptions): Tensor;
  norm(dims?: Dims, options?: NormOptions): Tensor;
  argmax(dim?: number, keepDim?: boolean): Tensor;
  argmin(dim?: number, keepDim?: boolean): Tensor;
  logSumExp(dims: Dims, keepDim?: boolean): Tensor;
  softmax(dim?: number): Tensor;
  logSoftmax(dim?: number): Tensor;
  cumsum(dim: number): Tensor;
  sort(dim?: number, options?: { readonly descending?: boolean }): Sorted;
  topk(k: number, dim?: number, options?: { readonly largest?: boolean }): Sorted;
  tril(diagonal?: number): Tensor;
  triu(diagonal?: number): Tensor;
  gather(dim: number, index: Tensor): Tensor;
  takeAlongDim(index: Tensor, dim?: number): Tensor;
  take(index: Tensor): Tensor;
  scatter(dim: number, index: Tensor, source: Operand): Tensor;
  scatterAdd(dim: number, index: Tensor, source: Tensor): Tensor;
  scatterReduce(
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: ScatterReduction,
    options?: { readonly includeSelf?: boolean },
  ): Tensor;
  indexSelect(dim: number, index: Tensor): Tensor;
  indexAdd(dim: number, index: Tensor, source: Tensor, options?: { readonly alpha?: number }): Tensor;
  indexCopy(dim: number, index: Tensor, source: Tensor): Tensor;
  indexFill(dim: number, index: Tensor, value: Operand): Tensor;
  indexPut(indices: readonly Index[], values: Operand, options?: { readonly accumulate?: boolean }): Tensor;
  maskedSelect(mask: Tensor): Tensor;
  nonzero(): Tensor;
  /** Returns a copy in new memory; the gradient passes through. */
  clone(): Tensor;
  /** This tensor if it is contiguous, else a copy. */
  contiguous(): Tensor;
  /** A copy in another dtype or on another device, or this tensor if it has that. Integers drop fractions. */
  to(target: DType | DeviceName, options?: ToOptions): Tensor;
  /**
   * Returns a copy in pinned host memory, or this tensor if it is already there. From pinned memory, `to('cuda', {
   * nonBlocking: true })` only starts a copy. Throws ERR_TENSOR_DEVICE without a CUDA device.
   */
  pinMemory(): Tensor;
  /**
   * Returns a handle with which another library can use the tensor without a copy; `fromHandle` accepts such a handle.
   * The memory stays until `release()` is called, or until the handle's `owner` is garbage-collected. Throws if the
   * tensor requires a gradient.
   */
  handle(): TensorHandle;
  /** Writes in place and is not recorded, like all methods below. x.set([0, ':'], 1) sets the first row. */
  set(indices: readonly Index[], value: Operand, options?: { readonly accumulate?: boolean }): Tensor;
  copy_(other: Operand): Tensor;
  add_(other: Operand): Tensor;
  sub_(other: Operand): Tensor;
  mul_(other: Operand): Tensor;
  div_(other: Operand): Tensor;
  fill_(value: number): Tensor;
  zero_(): Tensor;
}

// The class has these methods once ops/methods/ has been loaded.
export interface Tensor extends TensorMethods, InPlaceMethods<TensorMethods> {
  /** Offers the autograd to the differentiable verbs of collectives; see across(). */
  readonly [differentiableSymbol]: () => Autograd<Tensor>;
}

/**
 * An array of numbers of one dtype, on the CPU or a CUDA device, which may require a gradient. Made by tensor(),
 * zeros() and operations.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: ops/methods/ must have every method to compile
export class Tensor extends GradTensor<Tensor> {
  protected override over(storage: Storage): Tensor {
    return new Tensor(storage, this.shape);
  }

  /** Returns a tensor over the same memory without a graph. */
  detach(): Tensor {
    return viewAs(this, this.shape, this.strided);
  }
}

/**
 * Returns a tensor that belongs to the innermost open scope. Takes ownership of one reference of `storage`. @internal
 */
export function created(storage: Storage, shape: Shape, strided: Strided = storage.dense): Tensor {
  const tensor = new Tensor(storage, shape, strided);
  track(tensor);
  return tensor;
}

/** Returns a tensor over memory that has not been written. @internal */
export function empty(dtype: DType, shape: Shape, device: Device = 'cpu'): Tensor {
  return created(allocate(dtype, countOf(shape), device), shape);
}

/** Returns a tensor with another layout over the same memory. @internal */
export function viewOf(a: Tensor, layout: Layout): Tensor {
  const { storage } = a;
  // The offset of a layout without elements may be behind the end of the memory, which kernels refuse.
  if (countOf(layout.shape) === 0) return viewAs(a, layout.shape, storage.dense);
  const strides = isDense(layout) ? null : layout.strides;
  const strided = { memory: storage.memory, offset: layout.offset, strides };
  return viewAs(a, layout.shape, strides === null && layout.offset === 0 ? storage.dense : strided);
}

/**
 * Returns a tensor of another shape over the same memory; the strides of `strided` fit the shape.
 * @internal
 */
export function viewAs(a: Tensor, shape: Shape, strided: Strided): Tensor {
  const tensor = new Tensor(a.storage.retain(), shape, strided);
  track(tensor);
  return tensor;
}
