// Methods of tensors that multiply matrices and read or write diagonals. ops/methods/products.ts installs them.
import type { AddedOptions } from '../op-options.ts';

/** `Tensor` is a type parameter, because the file of the class imports this one. */
export interface ProductMethods<Tensor> {
  /** Multiplies each element of a vector by each of another: [m], [n] → [m, n]. */
  outer(other: Tensor): Tensor;
  /** Multiplies two matrices, as matmul() does: [m, k], [k, n] → [m, n]. */
  mm(other: Tensor): Tensor;
  /** Multiplies two batches of matrices of the same length, without broadcasting: [b, m, k], [b, k, n] → [b, m, n]. */
  bmm(other: Tensor): Tensor;
  /** Multiplies a matrix by a vector: [m, k], [k] → [m]. */
  mv(other: Tensor): Tensor;
  /** Sums the products of the elements of two vectors of the same length. */
  dot(other: Tensor): Tensor;
  /** Computes dot(), as all numbers here are real. */
  vdot(other: Tensor): Tensor;
  /**
   * Sums products along the last dimensions: [..., k], [..., k]. A tensor without dimensions multiplies all elements.
   */
  inner(other: Tensor): Tensor;
  /**
   * Computes the Kronecker product: replaces each element of this tensor by its product with all of `other`. Missing
   * dimensions are added in front.
   */
  kron(other: Tensor): Tensor;
  /** Computes cross products of vectors of 3 elements along `dim`, with the other dimensions broadcast. */
  cross(other: Tensor, dim?: number): Tensor;
  /**
   * Adds the product of two matrices to this tensor, which is broadcast: [m, n] for [m, k] and [k, n]; all of one
   * dtype.
   */
  addmm(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  /** Adds the product of a matrix and a vector to this tensor, which is broadcast: [m] for [m, k] and [k]. */
  addmv(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  /** Adds the outer product of two vectors to this tensor, which is broadcast: [m, n] for [m] and [n]. */
  addr(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  /** Adds the products of two batches to this tensor, which is broadcast: [b, m, n] for [b, m, k] and [b, k, n]. */
  baddbmm(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  /** Adds the sum of the products of two batches of matrices to this tensor: [m, n] for [b, m, k] and [b, k, n]. */
  addbmm(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  /** Returns the diagonals of two dimensions as a new last dimension. Shares memory with this tensor. */
  diagonal(offset?: number, dim1?: number, dim2?: number): Tensor;
  /** Returns a copy of a diagonal of a matrix, or a matrix with a vector on its diagonal. */
  diag(offset?: number): Tensor;
  /** Returns a matrix with all elements of this tensor on a diagonal. */
  diagflat(offset?: number): Tensor;
  /**
   * Returns matrices of zeros, with the last dimension of this tensor on a diagonal. The matrices are the dimensions
   * `dim1` and `dim2` of the result; `offset` counts as for diagonal().
   */
  diagEmbed(offset?: number, dim1?: number, dim2?: number): Tensor;
  /** Sums the diagonal of a matrix. Integers are summed in int64. */
  trace(): Tensor;
}
