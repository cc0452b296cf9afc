// Options of the verbs.
import type { Wire } from '../backend.ts';
import type { BufferLike } from '../group/buffer.ts';
import type { ReduceOp } from '../reduce-ops.ts';

/** One buffer, or a list of buffers for a single call. */
export type Buffers = BufferLike | readonly BufferLike[];

/** Argument of recv() to receive from any rank: the message that arrives first. */
export const anySource: unique symbol = Symbol.for('ringwise.anySource');
/** A rank, or anySource. */
export type Source = number | typeof anySource;

/** Options of every call. */
export interface CallOptions {
  /** Milliseconds until the operation fails with ERR_COLL_TIMEOUT. Default: the group's. */
  readonly timeoutMs?: number;
}
/** Options of collectives. Messages have tags instead of labels. */
export interface CollectiveOptions extends CallOptions {
  /**
   * Name of this call, such as 'gradients of the encoder'. Ranks compare it with the rest of the call, so
   * that two otherwise equal calls in another order are a mismatch instead of exchanging each other's data.
   * The same on all ranks. Default: none.
   */
  readonly label?: string;
}
/** Options of reductions. */
export interface ReduceOptions extends CollectiveOptions {
  /** Default 'sum'. The same on all ranks. */
  readonly op?: ReduceOp;
  /** Factor for this rank's elements; for 'premulSum' only. */
  readonly factor?: number;
  /**
   * Makes sums and averages of floats independent of the number of ranks, the algorithm and the splitting: the
   * same addends, up to 2^20, always give the same bits. For allReduce, reduce and reduceScatter on one buffer.
   * Sends about 2.25 × the bytes (4.5 × for 16-bit floats), in two operations. Default false.
   */
  readonly reproducible?: boolean;
  /**
   * This rank's addends, any number of buffers. Makes the reduction reproducible, even without `reproducible`:
   * the same addends, distributed to the ranks in any way, give the same bits. The buffer of allReduce and reduce
   * then only receives the result, and the `input` of reduceScatter is null. avg divides by the number of all
   * addends. All ranks pass contributions, of any number, or none does; else all reject with ERR_COLL_MISMATCH.
   */
  readonly contributions?: readonly BufferLike[];
}
/** Options of allReduce(). */
export interface AllReduceOptions extends ReduceOptions {
  /**
   * Rounds what is sent between hosts, for sum and avg of float32: every rank's values (inside a host, their
   * sum) and the result. 'bfloat16' keeps 8 bits of precision and sends half the bytes. 'int8' rounds blocks
   * of 32 elements, each element by at most 1/127 of the block's largest, and sends about a quarter of the bytes.
   * Default 'full'. The same on all ranks.
   */
  readonly wire?: Wire;
  /**
   * Error feedback for wire 'int8' and one buffer: a Float32Array of the same length, initially zeros, one
   * for each buffer that is reduced repeatedly. It keeps the rounding error and adds it the next time. The
   * caller owns it; it is read and written until the operation has settled. Default: none.
   */
  readonly residual?: BufferLike;
}
/** Options of verbs with a root. */
export interface RootOptions extends CollectiveOptions {
  /** The rank that sends to all, or receives from all. Default 0. The same on all ranks. */
  readonly root?: number;
}
/** Options of verbs whose parts may have different lengths. */
export interface CountsOptions extends CollectiveOptions {
  /** Elements of each rank's part, if they differ. The same on all ranks. */
  readonly counts?: readonly number[];
}
/** Options of allToAll(). */
export interface AllToAllOptions extends CollectiveOptions {
  /** Elements that this rank sends to each rank, if they differ. Requires `recvCounts`. */
  readonly sendCounts?: readonly number[];
  /** Elements that this rank receives from each rank; must equal that rank's `sendCounts` for this rank. */
  readonly recvCounts?: readonly number[];
}
/** Options of send() and recv(), and of their forms for objects. */
export interface MessageOptions extends CallOptions {
  /** Tag of the message, 0 to 2^29 - 1; default 0. A receive takes only messages with its own tag. */
  readonly tag?: number;
}

/** A message of a batch(). */
export type Message =
  | { readonly send: BufferLike; readonly to: number; readonly tag?: number }
  | { readonly recv: BufferLike; readonly from: Source; readonly tag?: number };

/** Result of recvObject(). */
export interface Received<T> {
  /** What the sender passed, as a copy. */
  readonly value: T;
  /** The sender's rank. */
  readonly source: number;
}

/** Options of split() and subgroup(). */
export interface SubgroupOptions {
  /**
   * Name for error messages. Default: the parent's name with the members' ranks in it, such as "world[0,2]".
   */
  readonly name?: string;
  /** Default deadline of operations in milliseconds. Default: the parent's. */
  readonly timeoutMs?: number;
}

/** Options of shrink(). */
export interface ShrinkOptions extends SubgroupOptions {
  /** Ranks to leave out. Default: those that the group's failure names. */
  readonly without?: readonly number[];
  /**
   * Milliseconds to wait for the other survivors. Ranks that have not come by then are left out. Default
   * 10,000.
   */
  readonly waitMs?: number;
}
