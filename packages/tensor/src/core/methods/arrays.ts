// Methods of tensors that make others like them, and that rearrange elements. ops/methods/arrays.ts installs them.
import type { CloseOptions, CreationOptions, Dims, ScatterReduction } from '../op-options.ts';
import type { Shape } from '../shape.ts';

/** `Tensor` is a type parameter, because the file of the class imports this one. */
export interface ArrayMethods<Tensor> {
  /** Returns zeros of another shape, with the dtype and on the device of this tensor. */
  newZeros(shape: Shape, options?: CreationOptions): Tensor;
  /** Returns ones of another shape, with the dtype and on the device of this tensor. */
  newOnes(shape: Shape, options?: CreationOptions): Tensor;
  /** Returns a tensor of another shape filled with `value`, with the dtype and on the device of this tensor. */
  newFull(shape: Shape, value: number, options?: CreationOptions): Tensor;
  /** Returns a tensor of another shape with uninitialised elements, with the dtype and on the device of this tensor. */
  newEmpty(shape: Shape, options?: CreationOptions): Tensor;
  /** Returns whether isclose is true for all elements. Waits for the result. */
  allclose(other: Tensor, options?: CloseOptions): boolean;
  /** Returns whether both tensors have the same shape and equal elements; NaN equals nothing. Waits for the result. */
  equal(other: Tensor): boolean;
  /**
   * Repeats the tensor `counts[d]` times along dimension d, counted from the last; dimensions without a count are not
   * repeated, and more counts than dimensions add dimensions in front. Returns a copy.
   */
  tile(counts: Shape): Tensor;
  /**
   * Repeats each slice along `dim` `repeats` times, or the elements of the flattened tensor without `dim`. Returns a
   * copy.
   */
  repeatInterleave(repeats: number | Tensor, dim?: number): Tensor;
  /**
   * Moves the dimensions `source` to the indices `destination`; the others keep their order. Shares memory with this
   * tensor.
   */
  movedim(source: Dims, destination: Dims): Tensor;
  /** Swaps two dimensions, as transpose() does. Shares memory with this tensor. */
  swapaxes(dim0: number, dim1: number): Tensor;
  /**
   * Returns windows of `size` elements along `dim`, which begin `step` elements apart: the dimension counts windows,
   * and a new last one the elements of each. Shares memory with this tensor.
   */
  unfold(dim: number, size: number, step: number): Tensor;
  /** Turns the plane of two dimensions by `k` quarters, from the first towards the second. Returns a copy. */
  rot90(k?: number, dims?: readonly number[]): Tensor;
  /** Reverses the order along the second dimension. Returns a copy. */
  fliplr(): Tensor;
  /** Reverses the order along the first dimension. Returns a copy. */
  flipud(): Tensor;
  /**
   * Returns the int64 positions of the elements that are not 0, one row [rank] for each. Waits for the number of them.
   */
  argwhere(): Tensor;
  /**
   * Splits along `dim` into `sections` parts, of which the first ones may have one element more, or before the given
   * positions. The parts share memory with this tensor.
   */
  tensorSplit(sections: number | readonly number[] | Tensor, dim?: number): Tensor[];
  /**
   * Splits a vector along its only dimension, and others along the second one: into parts of one size, or before
   * positions. The parts share memory with this tensor.
   */
  hsplit(sections: number | readonly number[]): Tensor[];
  /** Splits a tensor of at least 2 dimensions along the first one, as hsplit() does. */
  vsplit(sections: number | readonly number[]): Tensor[];
  /** Splits a tensor of at least 3 dimensions along the third one, as hsplit() does. */
  dsplit(sections: number | readonly number[]): Tensor[];
  /** Broadcasts this tensor to a shape, as expand() does. Shares memory with this tensor. */
  broadcastTo(shape: Shape): Tensor;
  /** Returns the elements as a vector. Shares memory with this tensor if strides allow it, else copies. */
  ravel(): Tensor;
  /** Returns view() with the shape of another tensor. */
  viewAs(other: Tensor): Tensor;
  /** Returns reshape() with the shape of another tensor. */
  reshapeAs(other: Tensor): Tensor;
  /** Returns expand() with the shape of another tensor. */
  expandAs(other: Tensor): Tensor;
  /** Sums over the dimensions along which `shape` was broadcast to the shape of this tensor. */
  sumToSize(shape: Shape): Tensor;
  /**
   * Returns a copy with the elements of `source` at the positions `index` of the flattened tensor. With `accumulate`
   * they are added.
   */
  put(index: Tensor, source: Tensor, accumulate?: boolean): Tensor;
  /**
   * Returns a copy in which the elements where `mask` is true are those of `source`, in order. The host waits for the
   * mask.
   */
  maskedScatter(mask: Tensor, source: Tensor): Tensor;
  /** Combines slice i of `source` with slice index[i] of a copy, along `dim`; `index` is [count]. */
  indexReduce(
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: Exclude<ScatterReduction, 'sum'>,
    options?: { readonly includeSelf?: boolean },
  ): Tensor;
  /** Returns a copy of this tensor whose slice `index` of `dim` has the elements of `source`. */
  selectScatter(source: Tensor, dim: number, index: number): Tensor;
  /**
   * Returns a copy of this tensor whose elements from `start` to `end` along `dim`, each `step`-th one, are those of
   * `source`. Both ends have the rules of ranges of at(); null means the beginning or the end.
   */
  sliceScatter(
    source: Tensor,
    dim?: number,
    start?: number | null,
    end?: number | null,
    step?: number,
  ): Tensor;
  /** Returns a copy of this tensor whose diagonal(offset, dim1, dim2) has the elements of `source`. */
  diagonalScatter(source: Tensor, offset?: number, dim1?: number, dim2?: number): Tensor;
}
