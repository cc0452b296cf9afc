// The tensor class of the public API. Its operations are declared here and implemented in ops/methods/, which calls
// ops/ and which every entry of the package imports. So operations can import this file, and it imports none of them.
import type { Strided } from '../backends/operands.ts';
import type { Device, DeviceName } from '../device/device.ts';
import { copySymbol } from '../errors/tensor-error.ts';
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
  /** int64: the position of each value along the dimension. */
  readonly indices: Tensor;
}

/**
 * The operations of a tensor, called `a` in formulas. Methods whose names end with an underscore change the tensor; the
 * others return new tensors, views, or the tensor itself if there is nothing to do.
 */
export interface TensorMethods
  extends ArrayMethods<Tensor>,
    FunctionMethods<Tensor>,
    ProductMethods<Tensor>,
    StatisticMethods<Tensor> {
  /** Adds elementwise, with broadcasting. */
  add(other: Operand): Tensor;
  /** Subtracts elementwise, with broadcasting. */
  sub(other: Operand): Tensor;
  /** Multiplies elementwise, with broadcasting. */
  mul(other: Operand): Tensor;
  /** Divides elementwise, with broadcasting; integers become float32. */
  div(other: Operand): Tensor;
  /**
   * Raises each element to the power of `other`, with broadcasting. Integers with a negative number as power throw.
   */
  pow(other: Operand): Tensor;
  /**
   * Returns the larger element of both; NaN where one is NaN. Equal elements share the gradient. A number must fit
   * the dtype.
   */
  maximum(other: Operand): Tensor;
  /**
   * Returns the smaller element of both; NaN where one is NaN. Equal elements share the gradient. A number must fit
   * the dtype.
   */
  minimum(other: Operand): Tensor;
  /** Returns bools: true where an element equals `other`. Broadcasts. */
  eq(other: Operand): Tensor;
  /** Returns bools: true where an element differs from `other`. Broadcasts. */
  ne(other: Operand): Tensor;
  /** Returns bools: true where an element is less than `other`. Broadcasts. */
  lt(other: Operand): Tensor;
  /** Returns bools: true where an element is at most `other`. Broadcasts. */
  le(other: Operand): Tensor;
  /** Returns bools: true where an element is greater than `other`. Broadcasts. */
  gt(other: Operand): Tensor;
  /** Returns bools: true where an element is at least `other`. Broadcasts. */
  ge(other: Operand): Tensor;
  /** Returns bools: true where both are not 0. Broadcasts. */
  logicalAnd(other: Operand): Tensor;
  /** Returns bools: true where one or both are not 0. Broadcasts. */
  logicalOr(other: Operand): Tensor;
  /** Returns bools: true where exactly one is not 0. Broadcasts. */
  logicalXor(other: Operand): Tensor;
  /** Returns bools: true where an element is 0. */
  logicalNot(): Tensor;
  /** Negates each element. */
  neg(): Tensor;
  /** Computes |a|. The gradient at 0 and at NaN is 0. */
  abs(): Tensor;
  /** Returns −1, 0 or 1 for each element; 0 for NaN, as in PyTorch. */
  sign(): Tensor;
  /** Computes e to the power of each element; under autocast in float32. */
  exp(): Tensor;
  /** Computes the natural logarithm; under autocast in float32. */
  log(): Tensor;
  /** Computes the square root; NaN for negative elements. */
  sqrt(): Tensor;
  /** Computes 1 / √a. */
  rsqrt(): Tensor;
  /** Squares each element. */
  square(): Tensor;
  /** Computes the sine of an angle in radians. */
  sin(): Tensor;
  /** Computes the cosine of an angle in radians. */
  cos(): Tensor;
  /** Computes the hyperbolic tangent. */
  tanh(): Tensor;
  /** Computes 1 / (1 + e⁻ᵃ). */
  sigmoid(): Tensor;
  /** Computes max(a, 0). The gradient at 0 is 0. */
  relu(): Tensor;
  /** Computes the error function. */
  erf(): Tensor;
  /** Computes a × Φ(a), with the exact distribution function or its approximation by a tanh (as in GPT-2). */
  gelu(options?: GeluOptions): Tensor;
  /** Computes a × sigmoid(a). */
  silu(): Tensor;
  /** Rounds down. Integers stay as they are. */
  floor(): Tensor;
  /** Rounds up. */
  ceil(): Tensor;
  /** Rounds to the nearest integer, halves to the even one. */
  round(): Tensor;
  /** Rounds towards zero. */
  trunc(): Tensor;
  /**
   * Limits every element to the range of two bounds, one of which may be absent; if they cross, the upper one
   * applies.
   */
  clamp(low?: Operand | null, high?: Operand | null): Tensor;
  /**
   * Returns a copy with `value`, a number or a tensor without dimensions, where `mask` is true. Keeps the dtype.
   */
  maskedFill(mask: Tensor, value: Operand): Tensor;
  /**
   * Multiplies matrices, which are the last two dimensions; leading dimensions are broadcast. A vector counts as a
   * row on the left and as a column on the right.
   */
  matmul(other: Tensor): Tensor;
  /**
   * Returns elements and parts by position: the results of x.at(0), x.at(':', [2, 5]), x.at('...', -1) and x.at(null)
   * share memory; with tensors of positions or of bool the result is a copy.
   */
  at(...indices: readonly Index[]): Tensor;
  /**
   * Returns this tensor in another shape; one size may be −1, which is computed. A view if the strides allow it,
   * else a copy.
   */
  reshape(shape: Shape): Tensor;
  /** Returns this tensor in another shape, as reshape() does, but throws if that would need a copy. */
  view(shape: Shape): Tensor;
  /** Joins the dimensions startDim … endDim to one, as reshape() does. */
  flatten(startDim?: number, endDim?: number): Tensor;
  /**
   * Drops the dimensions in `dims` whose size is 1; without `dims`, all such dimensions. Shares memory with this
   * tensor.
   */
  squeeze(dims?: Dims): Tensor;
  /** Adds a dimension of size 1, which is `dim` of the result. Shares memory with this tensor. */
  unsqueeze(dim: number): Tensor;
  /** Swaps two dimensions. Shares memory with this tensor. */
  transpose(dim0: number, dim1: number): Tensor;
  /** Transposes a matrix; returns a tensor of fewer dimensions unchanged. Shares memory with this tensor. */
  t(): Tensor;
  /** Reorders the dimensions. Shares memory with this tensor. */
  permute(dims: readonly number[]): Tensor;
  /**
   * Broadcasts dimensions of size 1, and adds dimensions in front. −1 keeps a size. Shares memory with this tensor.
   */
  expand(shape: Shape): Tensor;
  /**
   * Returns `length` indices of `dim` from `start` on; a negative start counts from the end. Shares memory with this
   * tensor.
   */
  narrow(dim: number, start: number, length: number): Tensor;
  /**
   * Returns the slice at `index` of `dim`, without that dimension. A negative index counts from the end. Shares
   * memory.
   */
  select(dim: number, index: number): Tensor;
  /**
   * Splits this tensor along `dim` into parts of the given sizes, or of one size, of which the last may be smaller.
   * The parts share memory with this tensor.
   */
  split(sizes: number | readonly number[], dim?: number): Tensor[];
  /**
   * Splits this tensor along `dim` into at most `chunks` parts of one size, of which the last may be smaller; into
   * `chunks` parts if the size is 0. The parts share memory with this tensor.
   */
  chunk(chunks: number, dim?: number): Tensor[];
  /** Returns the slices along `dim`, without that dimension. They share memory with this tensor. */
  unbind(dim?: number): Tensor[];
  /**
   * Splits one dimension into several; one size may be −1. Shares memory with this tensor where reshape does.
   */
  unflatten(dim: number, sizes: Shape): Tensor;
  /** Reverses the order along `dims`. Returns a copy. */
  flip(dims: Dims): Tensor;
  /**
   * Moves elements by `shifts` along `dims`, one shift for each dimension; elements that move past the end continue
   * at the start. Without `dims`, moves the elements of the flattened tensor. Returns a copy.
   */
  roll(shifts: Dims, dims?: Dims): Tensor;
  /**
   * Repeats the tensor `counts[d]` times along dimension d; more counts than dimensions add dimensions in front.
   * Returns a copy.
   */
  repeat(counts: Shape): Tensor;
  /** Sums over `dims`, or over all dimensions without them. Integers and bool are summed in int64. */
  sum(dims?: Dims, keepDim?: boolean): Tensor;
  /** Computes the mean of floats over `dims`. The mean of nothing is NaN. */
  mean(dims?: Dims, keepDim?: boolean): Tensor;
  /** Computes the product over `dims`. The gradient is also right where elements are 0. */
  prod(dims?: Dims, keepDim?: boolean): Tensor;
  /**
   * Returns the maxima over `dims`, or of all elements. Equal maxima share the gradient evenly. NaN is the largest.
   */
  max(dims?: Dims, keepDim?: boolean): Tensor;
  /**
   * Returns the minima over `dims`, or of all elements. Equal minima share the gradient evenly. NaN is the smallest.
   */
  min(dims?: Dims, keepDim?: boolean): Tensor;
  /** Returns a bool tensor: whether any element is not 0. */
  any(dims?: Dims, keepDim?: boolean): Tensor;
  /** Returns a bool tensor: whether no element is 0. */
  all(dims?: Dims, keepDim?: boolean): Tensor;
  /** Computes the variance over `dims`: Σ (a − mean)² ÷ (number of elements − correction). */
  variance(dims?: Dims, options?: VarianceOptions): Tensor;
  /**
   * Computes the standard deviation over `dims`: the root of the variance. The gradient of equal elements is 0.
   */
  std(dims?: Dims, options?: VarianceOptions): Tensor;
  /** Computes the norm (Σ |a|^p)^(1/p) over `dims`. The gradient of a vector of zeros is 0. */
  norm(dims?: Dims, options?: NormOptions): Tensor;
  /**
   * Returns the int64 index of the first maximum along `dim`, or in the flattened tensor. NaN counts as the largest.
   */
  argmax(dim?: number, keepDim?: boolean): Tensor;
  /**
   * Returns the int64 index of the first minimum along `dim`, or in the flattened tensor. NaN counts as the
   * smallest.
   */
  argmin(dim?: number, keepDim?: boolean): Tensor;
  /** Computes log Σ exp a over `dims`, without overflow; −∞ for nothing. */
  logSumExp(dims: Dims, keepDim?: boolean): Tensor;
  /**
   * Computes exp a ÷ Σ exp a along `dim`, as exp of logSoftmax: numbers ≥ 0 that add up to 1, but for rounding.
   */
  softmax(dim?: number): Tensor;
  /** Computes the logarithm of softmax along `dim`, without overflow. */
  logSoftmax(dim?: number): Tensor;
  /** Computes running sums along `dim`. Integers and bool are summed in int64. */
  cumsum(dim: number): Tensor;
  /** Sorts along `dim`. Equal elements keep their order; NaN counts as the largest. */
  sort(dim?: number, options?: { readonly descending?: boolean }): Sorted;
  /** Returns the `k` largest (or smallest) elements along `dim`, in order. */
  topk(k: number, dim?: number, options?: { readonly largest?: boolean }): Sorted;
  /**
   * Returns matrices (the last two dimensions) with zeros above a diagonal: 0 is the main one, 1 the one above it.
   */
  tril(diagonal?: number): Tensor;
  /**
   * Returns matrices (the last two dimensions) with zeros below a diagonal: 0 is the main one, 1 the one above it.
   */
  triu(diagonal?: number): Tensor;
  /**
   * Gathers out[i][j][k] = a[index[i][j][k]][j][k] for dim 0, and so on. The result has the shape of `index`.
   */
  gather(dim: number, index: Tensor): Tensor;
  /**
   * Gathers along `dim`, with this tensor and `index` broadcast to each other in the other dimensions: sorts a
   * tensor by the indices that sort() or argmax() with keepDim gave.
   */
  takeAlongDim(index: Tensor, dim?: number): Tensor;
  /**
   * Returns the elements of this tensor, counted as if it were flat, at `index`, whose shape the result has.
   * Negative indices count from the end.
   */
  take(index: Tensor): Tensor;
  /**
   * Returns a copy of this tensor in which elements of `source`, a tensor or a number, replace those that `index`
   * names along `dim`: for dim 0, out[index[i][j]][j] = source[i][j].
   */
  scatter(dim: number, index: Tensor, source: Operand): Tensor;
  /** Adds elements of `source` to the elements of a copy of this tensor that `index` names along `dim`. */
  scatterAdd(dim: number, index: Tensor, source: Tensor): Tensor;
  /**
   * Combines elements of `source` with the elements of a copy of this tensor that `index` names along `dim`. Shapes
   * have the rules of scatterAdd(). 'mean' of integers rounds down; equal extremes share a gradient.
   */
  scatterReduce(
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: ScatterReduction,
    options?: { readonly includeSelf?: boolean },
  ): Tensor;
  /**
   * Selects slices of this tensor along `dim` by `index` [count]; for a single slice, the index may have no
   * dimension.
   */
  indexSelect(dim: number, index: Tensor): Tensor;
  /**
   * Adds slice i of `source`, times `alpha`, to slice index[i] of a copy of this tensor, along `dim`; `index` is
   * [count].
   */
  indexAdd(dim: number, index: Tensor, source: Tensor, options?: { readonly alpha?: number }): Tensor;
  /**
   * Replaces slice index[i] of a copy of this tensor by slice i of `source`, along `dim`; `index` is [count].
   */
  indexCopy(dim: number, index: Tensor, source: Tensor): Tensor;
  /**
   * Sets the slices of a copy of this tensor that `index` [count] names along `dim` to a number, or to a 0-d tensor.
   * Negative indices count from the end.
   */
  indexFill(dim: number, index: Tensor, value: Operand): Tensor;
  /**
   * Returns a copy of this tensor with `values` at the elements that `indices` name, a list that at() accepts.
   * Gradients reach this tensor and `values`. Otherwise it has the rules of set().
   */
  indexPut(indices: readonly Index[], values: Operand, options?: { readonly accumulate?: boolean }): Tensor;
  /** Returns the elements of this tensor where `mask` (bool) is true: [count]. Both are broadcast. */
  maskedSelect(mask: Tensor): Tensor;
  /** Returns the positions of the elements that are not 0, in row-major order: int64 [count, dimensions]. */
  nonzero(): Tensor;
  /** Returns a copy in new memory; the gradient passes through. */
  clone(): Tensor;
  /** Returns this tensor if it is contiguous, else a copy. */
  contiguous(): Tensor;
  /** Returns a copy in another dtype or on another device, or this tensor if it has that. Integers drop fractions. */
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
  /**
   * Writes `value` to the elements that `indices` name, in place. Not recorded, like all methods below.
   * x.set([0, ':'], 1) sets the first row.
   */
  set(indices: readonly Index[], value: Operand, options?: { readonly accumulate?: boolean }): Tensor;
  /** Copies the elements of `other`, which is broadcast, into this tensor. Not recorded. */
  copy_(other: Operand): Tensor;
  /** Adds `other` in place. Throws for a tensor that requires a gradient, except in noGrad(). */
  add_(other: Operand): Tensor;
  /** Subtracts `other` in place, with the rules of add_(). */
  sub_(other: Operand): Tensor;
  /** Multiplies by `other` in place, with the rules of add_(). */
  mul_(other: Operand): Tensor;
  /** Divides by `other` in place, with the rules of add_(). This tensor must be a float. */
  div_(other: Operand): Tensor;
  /** Sets every element to `value`, which must fit the dtype; integers drop fractions. */
  fill_(value: number): Tensor;
  /** Sets every element to 0, in place. */
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
// Not a member of the class, so that declarations do not have it.
Object.defineProperty(Tensor.prototype, copySymbol, { value: true });

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
