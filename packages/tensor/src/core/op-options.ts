// Types of arguments that operations and the methods of a tensor share.
import type { DeviceName } from '../device/device.ts';
import type { DType } from './dtype.ts';

/** One dimension or several; negative ones count from the last. */
export type Dims = number | readonly number[];

/**
 * An index that makes a view: a position (negative ones count from the end), which drops the dimension; a range
 * [start, end, step], where start and end may be null and step is at least 1; ':' for a whole dimension; '...' for as
 * many whole dimensions as are left; null for a new dimension of size 1.
 */
export type ViewIndex = number | Range | ':' | '...' | null;
/** A range of positions along a dimension; null means the beginning or the end. */
export type Range = readonly [start: number | null, end?: number | null, step?: number];

/** How scatterReduce() combines elements. */
export type ScatterReduction = 'sum' | 'prod' | 'mean' | 'amax' | 'amin';

/** Options of gelu(). */
export interface GeluOptions {
  /** Default 'none'. */
  readonly approximate?: 'none' | 'tanh';
}

/** Options of variance(), std() and varMean(). */
export interface VarianceOptions {
  /** The divisor is the number of elements minus this: 1 (default) for a sample, 0 for a whole population. */
  readonly correction?: number;
  /** Whether the reduced dimensions stay, with size 1. Default false. */
  readonly keepDim?: boolean;
}

/** Options of norm(). */
export interface NormOptions {
  /**
   * The order of the norm: 2 (default), 1, or any other number; Infinity for the largest magnitude, −Infinity for the
   * smallest, 0 for the number of elements that are not 0.
   */
  readonly p?: number;
  /** Whether the reduced dimensions stay, with size 1. Default false. */
  readonly keepDim?: boolean;
}

/** Options of bucketize(). */
export interface BucketizeOptions {
  /** Whether a value that equals a boundary belongs after it. Default false. */
  readonly right?: boolean;
  /** Whether to return int32 instead of int64. Default false. */
  readonly outInt32?: boolean;
}

/** Options of to(). */
export interface ToOptions {
  /**
   * Whether to start a copy between host and device without waiting. Elements of pinned memory must not change until
   * the copy has ended; elements of other host memory are read at once, into temporary pinned memory. A result on the
   * CPU is in pinned memory and may be read when the copy has ended (see CudaEvent). Default false: a copy to the
   * device may wait for large copies before it, and a copy to the host waits until it has ended.
   */
  readonly nonBlocking?: boolean;
}

/** Options of functions that make tensors. */
export interface CreationOptions {
  /** Type of the elements. */
  readonly dtype?: DType;
  /** Default: 'cpu'. */
  readonly device?: DeviceName;
  /** Whether to use pinned host memory, which CUDA devices copy directly; `device` is then 'cpu'. Default false. */
  readonly pinMemory?: boolean;
  /** Whether to record operations on the tensor, so that backward fills its `grad`. Default false. Floats only. */
  readonly requiresGrad?: boolean;
}

/** Options of allclose(). */
export interface CloseOptions {
  /** The distance that is allowed in proportion to |b|. Default 1e-5. */
  readonly rtol?: number;
  /** The distance that is always allowed. Default 1e-8. */
  readonly atol?: number;
  /** Whether NaN is close to NaN. Default false. */
  readonly equalNan?: boolean;
}

/** Options of addmm() and other products that are added to a tensor. */
export interface AddedOptions {
  /** The factor of the tensor. Default 1; for 0 the tensor is not read. Integers drop its fraction. */
  readonly beta?: number;
  /** The factor of the product. Default 1. Integers drop its fraction. */
  readonly alpha?: number;
}

/** Options of argsort(). */
export interface ArgsortOptions {
  /** Whether the largest element comes first. Default false. */
  readonly descending?: boolean;
  /** Whether equal elements keep their order, which they do here in any case. */
  readonly stable?: boolean;
}

/** Options of aminmax(). */
export interface AminmaxOptions {
  /** Whether the reduced dimension stays, with size 1. Default false. */
  readonly keepDim?: boolean;
}

/** Options of quantile() and nanquantile(). */
export interface QuantileOptions {
  /** Value of a quantile between two elements. Default 'linear'. */
  readonly interpolation?: 'linear' | 'lower' | 'higher' | 'nearest' | 'midpoint';
  readonly keepDim?: boolean;
}

/** Options of unique(). */
export interface UniqueOptions {
  /** Whether to return, for each element, the position of its value. Default false. */
  readonly returnInverse?: boolean;
  /** Whether to return how often each value occurs. Default false. */
  readonly returnCounts?: boolean;
  /** The dimension whose slices are compared. Without it, all elements are compared. */
  readonly dim?: number;
}

/** Options of cov(). `Tensor` is a type parameter, because the file of the class imports this one. */
export interface CovOptions<Tensor> {
  /** The divisor is the number of observations minus this. Default 1. */
  readonly correction?: number;
  /** How often each observation was made: integers ≥ 0. Default: once. */
  readonly fweights?: Tensor | null;
  /** How much each observation counts: floats ≥ 0. Default: all count alike. */
  readonly aweights?: Tensor | null;
}

/** Options of cdist(). */
export interface CdistOptions {
  /** The order of the norm, ≥ 0. Default 2. */
  readonly p?: number;
}

/** Options of normalize(). */
export interface NormalizeOptions {
  /** The order of the norm. Default 2. */
  readonly p?: number;
  /** Default 1. */
  readonly dim?: number;
  /** Minimum divisor. Default 1e-12. */
  readonly eps?: number;
}

/** Options of histogram(). `Tensor` is a type parameter, because the file of the class imports this one. */
export interface HistogramOptions<Tensor> {
  /** Both ends of bins of one width. Default: the smallest and the largest element. */
  readonly range?: readonly [low: number, high: number];
  /** A weight for each element, which has the shape and dtype of the elements. Default: each counts 1. */
  readonly weight?: Tensor;
  /** Whether to divide each count by the total and by the width of its bin. Default false. */
  readonly density?: boolean;
}
