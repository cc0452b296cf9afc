// Types of arguments that operations and the methods of a tensor share.

export type Dims = number | readonly number[];

export type Index = number | Range | ':' | '...' | null;
export type Range = readonly [start: number | null, end?: number | null, step?: number];

export interface GeluOptions {
  /** Default 'none'. */
  readonly approximate?: 'none' | 'tanh';
}

export interface VarianceOptions {
  /** What is taken off the number of elements: 1 (default) for a sample, 0 for a whole population. */
  readonly correction?: number;
  readonly keepDim?: boolean;
}

export interface NormOptions {
  /**
   * 2 (default), 1, or any other number; Infinity for the largest magnitude, −Infinity for the smallest, 0 for how many
   * elements are not 0.
   */
  readonly p?: number;
  readonly keepDim?: boolean;
}

export interface ToOptions {
  /**
   * Only starts a copy between host and device. From pinned memory: its elements must not change until the
   * copy has ended. From other memory of the host: they are taken at once, through pinned memory of their
   * size. To the CPU: the result lies in pinned memory, and may be read once the stream has come there (see
   * CudaEvent). Default false: a copy may wait for large ones before it.
   */
  readonly nonBlocking?: boolean;
}
