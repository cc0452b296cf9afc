// Methods of tensors that multiply matrices and read or write diagonals. ops/methods/products.ts installs them.
import type { AddedOptions } from '../op-options.ts';

/** `Tensor` is a type parameter, because the file of the class imports this one. */
export interface ProductMethods<Tensor> {
  outer(other: Tensor): Tensor;
  mm(other: Tensor): Tensor;
  bmm(other: Tensor): Tensor;
  mv(other: Tensor): Tensor;
  dot(other: Tensor): Tensor;
  vdot(other: Tensor): Tensor;
  inner(other: Tensor): Tensor;
  kron(other: Tensor): Tensor;
  cross(other: Tensor, dim?: number): Tensor;
  addmm(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  addmv(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  addr(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  baddbmm(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  addbmm(a: Tensor, b: Tensor, options?: AddedOptions): Tensor;
  /** The diagonals of two dimensions as a new last dimension. A view. */
  diagonal(offset?: number, dim1?: number, dim2?: number): Tensor;
  diag(offset?: number): Tensor;
  diagflat(offset?: number): Tensor;
  diagEmbed(offset?: number, dim1?: number, dim2?: number): Tensor;
  trace(): Tensor;
}
