// The operands of kernels: memory, the location of elements in it, and positions in a stream of random numbers.
import type { DType, HostArray } from '../core/dtype.ts';
import type { Device } from '../device/device.ts';

/** A piece of memory of a kernel set. The holder of the last reference frees it, once, by `Kernels.free`. */
export interface Memory {
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  /** Names the memory inside its kernel set; an integer ≥ 1, so that calls into native code stay cheap. */
  readonly handle: number;
  readonly device: Device;
  /**
   * The memory as an array; for a CUDA device, a copy that is made when this is read. Must not be used after
   * `free`.
   */
  readonly host: HostArray;
}

/** The location of the elements of a call's shape. */
export interface Strided {
  readonly memory: Memory;
  /** The first element. */
  readonly offset: number;
  /** Elements from one index to the next, by dimension; 0 broadcasts. Null: dense in the shape of the call. */
  readonly strides: readonly number[] | null;
}

/** An input of a kernel: elements, or one number for all of them. */
export type Input = Strided | number;

/** A stream of random words: see docs/decisions/2026-11-21-random-stream.md. */
export interface Stream {
  readonly seed: number;
  /** The first block of four words. */
  readonly offset: number;
  /**
   * Set in a captured step: the index, among the step's numbers, of the seed and the first block of the current run.
   * These replace `seed`, and `offset` counts from that block.
   */
  readonly live?: number;
}

/**
 * The numbers that an optimiser step reads beside its tensors. `momentum` is the first beta of adam and lion;
 * `smoothing` is their second beta, the alpha of rmsprop and the dampening of sgd.
 */
export interface OptimizerNumbers {
  /** Number of steps of each tensor, this one included. */
  readonly steps: Float64Array;
  readonly lr: number;
  readonly weightDecay: number;
  readonly momentum: number;
  readonly smoothing: number;
  readonly epsilon: number;
}
