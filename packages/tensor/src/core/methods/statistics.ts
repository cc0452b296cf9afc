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
  /** int64: the position of each value along the dimension. */
  readonly indices: Tensor;
}

/** `Tensor` is a type parameter, because the file of the class imports this one. */
export interface StatisticMethods<Tensor> {
  /**
   * Returns the int64 positions that sort this tensor along `dim`. Equal elements keep their order, also without
   * `stable`.
   */
  argsort(dim?: number, options?: ArgsortOptions): Tensor;
  /** Sorts along the first dimension. */
  msort(): Tensor;
  /** Returns the element of rank `k` along `dim`, counted from 1 in ascending order, and its position. NaN is last. */
  kthvalue(k: number, dim?: number, keepDim?: boolean): Found<Tensor>;
  /**
   * Returns the most frequent element along `dim`, the smallest of several, and the position of its last occurrence.
   * Each NaN counts as a different element.
   */
  mode(dim?: number, keepDim?: boolean): Found<Tensor>;
  /**
   * Returns the median of all elements: of an even number of elements the lower of both in the middle, and NaN if there
   * is one.
   */
  median(): Tensor;
  /**
   * Returns the medians along `dim` and their positions: of an even number of elements the lower of both in the middle.
   */
  median(dim: number, keepDim?: boolean): Found<Tensor>;
  /** Returns the median of the elements that are not NaN; NaN if all are. */
  nanmedian(): Tensor;
  /** Returns the medians along `dim` of the elements that are not NaN, and their positions. */
  nanmedian(dim: number, keepDim?: boolean): Found<Tensor>;
  /**
   * Returns the quantiles `q`, from 0 to 1, along `dim`, or of all elements. Several quantiles are a new first
   * dimension. A row with a NaN gives NaN.
   */
  quantile(q: number | Tensor, dim?: number, options?: QuantileOptions): Tensor;
  /** Returns the same as quantile(), of the elements that are not NaN; NaN if all are. */
  nanquantile(q: number | Tensor, dim?: number, options?: QuantileOptions): Tensor;
  /**
   * Returns the maxima of all elements up to each along `dim`, and the position of the last one. NaN is the largest.
   */
  cummax(dim: number): Found<Tensor>;
  /**
   * Returns the minima of all elements up to each along `dim`, and the position of the last one. NaN is the smallest.
   */
  cummin(dim: number): Found<Tensor>;
  /** Computes running products along `dim`. Integers and bool are multiplied in int64. */
  cumprod(dim: number): Tensor;
  /** Computes log Σ exp of all elements up to each along `dim`, without overflow. */
  logcumsumexp(dim: number): Tensor;
  /** Returns the maxima over `dims`, or of all elements, as max() does. Equal maxima share the gradient. */
  amax(dims?: Dims, keepDim?: boolean): Tensor;
  /** Returns the minima over `dims`, or of all elements, as min() does. Equal minima share the gradient. */
  amin(dims?: Dims, keepDim?: boolean): Tensor;
  /** Returns [minima, maxima] along `dim`, or of all elements. */
  aminmax(dim?: number, options?: AminmaxOptions): [Tensor, Tensor];
  /** Sums the elements that are not NaN, as sum() does. */
  nansum(dims?: Dims, keepDim?: boolean): Tensor;
  /** Computes the mean of the floats that are not NaN; NaN if all are, as is the gradient then. */
  nanmean(dims?: Dims, keepDim?: boolean): Tensor;
  /** Counts the elements that are not 0, over `dims` or all dimensions: int64. NaN is not 0. */
  countNonzero(dims?: Dims): Tensor;
  /**
   * Counts the elements in `bins` bins of one width from `low` to `high`; if both are equal, from the smallest to the
   * largest element. Float32 or float64.
   */
  histc(bins?: number, low?: number, high?: number): Tensor;
  /**
   * Counts the elements in `bins` bins of one width, or between the edges in a vector. Returns the counts and the
   * edges. Float32 or float64.
   */
  histogram(bins: number | Tensor, options?: HistogramOptions<Tensor>): [hist: Tensor, binEdges: Tensor];
  /** Returns the covariances of variables [variables, observations]: [variables, variables]. */
  cov(options?: CovOptions<Tensor>): Tensor;
  /**
   * Returns the correlations of variables, with the shapes of cov(): covariances divided by both standard deviations.
   */
  corrcoef(): Tensor;
  /** Returns the norm of the difference of two tensors, which are broadcast: a number without dimensions. */
  dist(other: Tensor, p?: number): Tensor;
  /** Scales the slices along `dim` whose norm of order `p` is larger than `most` down to that norm. */
  renorm(p: number, dim: number, most: number): Tensor;
}
