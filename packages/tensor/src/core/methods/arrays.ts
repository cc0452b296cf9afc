// Methods of tensors that make others like them, and that rearrange elements. ops/methods/arrays.ts installs them.
import type { CloseOptions, CreationOptions, Dims, ScatterReduction } from '../op-options.ts';
import type { Shape } from '../shape.ts';

/** `Tensor` is a type parameter, because the file of the class imports this one. */
export interface ArrayMethods<Tensor> {
  /** Zeros of another shape, with the dtype and on the device of this tensor. */
  newZeros(shape: Shape, options?: CreationOptions): Tensor;
  /** Ones, as newZeros() makes zeros. */
  newOnes(shape: Shape, options?: CreationOptions): Tensor;
  /** The value everywhere, as newZeros() makes zeros. */
  newFull(shape: Shape, value: number, options?: CreationOptions): Tensor;
  /** Elements that are not set. */
  newEmpty(shape: Shape, options?: CreationOptions): Tensor;
  allclose(other: Tensor, options?: CloseOptions): boolean;
  equal(other: Tensor): boolean;
  tile(counts: Shape): Tensor;
  repeatInterleave(repeats: number | Tensor, dim?: number): Tensor;
  movedim(source: Dims, destination: Dims): Tensor;
  swapaxes(dim0: number, dim1: number): Tensor;
  /**
   * Windows of `size` elements along `dim`, which begin `step` elements apart: the dimension counts windows, and a new
   * last one the elements of each. A view.
   */
  unfold(dim: number, size: number, step: number): Tensor;
  rot90(k?: number, dims?: readonly number[]): Tensor;
  fliplr(): Tensor;
  flipud(): Tensor;
  argwhere(): Tensor;
  tensorSplit(sections: number | readonly number[] | Tensor, dim?: number): Tensor[];
  hsplit(sections: number | readonly number[]): Tensor[];
  vsplit(sections: number | readonly number[]): Tensor[];
  dsplit(sections: number | readonly number[]): Tensor[];
  broadcastTo(shape: Shape): Tensor;
  ravel(): Tensor;
  viewAs(other: Tensor): Tensor;
  reshapeAs(other: Tensor): Tensor;
  expandAs(other: Tensor): Tensor;
  /** Sums over the dimensions along which `shape` was broadcast to the shape of this tensor. */
  sumToSize(shape: Shape): Tensor;
  put(index: Tensor, source: Tensor, accumulate?: boolean): Tensor;
  maskedScatter(mask: Tensor, source: Tensor): Tensor;
  indexReduce(
    dim: number,
    index: Tensor,
    source: Tensor,
    reduce: Exclude<ScatterReduction, 'sum'>,
    options?: { readonly includeSelf?: boolean },
  ): Tensor;
  selectScatter(source: Tensor, dim: number, index: number): Tensor;
  sliceScatter(
    source: Tensor,
    dim?: number,
    start?: number | null,
    end?: number | null,
    step?: number,
  ): Tensor;
  diagonalScatter(source: Tensor, offset?: number, dim1?: number, dim2?: number): Tensor;
}
