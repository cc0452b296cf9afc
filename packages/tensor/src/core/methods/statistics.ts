// Methods of tensors that order, count and describe elements. ops/methods/statistics.ts installs them.
import type {
  AminmaxOptions,
  ArgsortOptions,
  CovOptions,
  Dims,
  HistogramOptions,
  QuantileOptions,
} from '../op-options.ts';

interface Found<Tensor> {
  readonly values: Tensor;
  /** int64: where each value stood along the dimension. */
  readonly indices: Tensor;
}

/** `Tensor` is a type parameter, because the file of the class imports this one. */
export interface StatisticMethods<Tensor> {
  argsort(dim?: number, options?: ArgsortOptions): Tensor;
  msort(): Tensor;
  kthvalue(k: number, dim?: number, keepDim?: boolean): Found<Tensor>;
  mode(dim?: number, keepDim?: boolean): Found<Tensor>;
  median(): Tensor;
  median(dim: number, keepDim?: boolean): Found<Tensor>;
  nanmedian(): Tensor;
  nanmedian(dim: number, keepDim?: boolean): Found<Tensor>;
  quantile(q: number | Tensor, dim?: number, options?: QuantileOptions): Tensor;
  nanquantile(q: number | Tensor, dim?: number, options?: QuantileOptions): Tensor;
  cummax(dim: number): Found<Tensor>;
  cummin(dim: number): Found<Tensor>;
  cumprod(dim: number): Tensor;
  logcumsumexp(dim: number): Tensor;
  amax(dims?: Dims, keepDim?: boolean): Tensor;
  amin(dims?: Dims, keepDim?: boolean): Tensor;
  aminmax(dim?: number, options?: AminmaxOptions): [Tensor, Tensor];
  nansum(dims?: Dims, keepDim?: boolean): Tensor;
  nanmean(dims?: Dims, keepDim?: boolean): Tensor;
  countNonzero(dims?: Dims): Tensor;
  histc(bins?: number, low?: number, high?: number): Tensor;
  histogram(bins: number | Tensor, options?: HistogramOptions<Tensor>): [hist: Tensor, binEdges: Tensor];
  cov(options?: CovOptions<Tensor>): Tensor;
  corrcoef(): Tensor;
  dist(other: Tensor, p?: number): Tensor;
  renorm(p: number, dim: number, most: number): Tensor;
}
