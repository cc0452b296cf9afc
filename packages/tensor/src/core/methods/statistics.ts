// Methods of tensors that order, count and describe elements. ops/methods/statistics.ts installs them.
import type { AminmaxOptions, ArgsortOptions, Dims } from '../op-options.ts';

interface Found<Tensor> {
  readonly values: Tensor;
  /** int64: where each value stood along the dimension. */
  readonly indices: Tensor;
}

/** The type parameter stands for Tensor, whose file imports this one. */
export interface StatisticMethods<Tensor> {
  argsort(dim?: number, options?: ArgsortOptions): Tensor;
  msort(): Tensor;
  median(): Tensor;
  median(dim: number, keepDim?: boolean): Found<Tensor>;
  nanmedian(): Tensor;
  nanmedian(dim: number, keepDim?: boolean): Found<Tensor>;
  cummax(dim: number): Found<Tensor>;
  cummin(dim: number): Found<Tensor>;
  cumprod(dim: number): Tensor;
  amax(dims?: Dims, keepDim?: boolean): Tensor;
  amin(dims?: Dims, keepDim?: boolean): Tensor;
  aminmax(dim?: number, options?: AminmaxOptions): [Tensor, Tensor];
  countNonzero(dims?: Dims): Tensor;
}
