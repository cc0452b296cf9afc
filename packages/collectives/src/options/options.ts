// What the verbs take besides buffers.
import type { Wire } from '../backend.ts';
import type { BufferLike } from '../group/buffer.ts';
import type { ReduceOp } from '../reduce-ops.ts';

/** One buffer, or several that travel in one call. */
export type Buffers = BufferLike | readonly BufferLike[];

/** Given to recv(): takes the message of whoever sends first. */
export const anySource: unique symbol = Symbol.for('ringwise.anySource');
/** A rank, or anySource. */
export type Source = number | typeof anySource;

export interface CallOptions {
  /** Milliseconds until the operation fails with ERR_COLL_TIMEOUT. Default: the group's. */
  readonly timeoutMs?: number;
}
/** Of everything but messages, which have tags. */
export interface CollectiveOptions extends CallOptions {
  /**
   * What this call is about, such as 'gradients of the encoder'. Compared between the ranks with the rest of the call, so that two
   * equal ones in another order are a mismatch and do not swap their data. The same on all ranks. Default: none.
   */
  readonly label?: string;
}
export interface ReduceOptions extends CollectiveOptions {
  /** Default 'sum'. The same on all ranks. */
  readonly op?: ReduceOp;
  /** What this rank's elements are multiplied by; for 'premulSum' only. */
  readonly factor?: number;
  /**
   * allReduce, reduce and reduceScatter of floats, sum and avg, one buffer: the same bits whatever the number of
   * ranks, the algorithm and the cuts, of up to 2^20 addends. About 2.25 × the bytes, in two operations. Default false.
   */
  readonly reproducible?: boolean;
  /**
   * The addends of this rank, any number of them, for a reproducible reduction: the same ones dealt to other ranks
   * give the same bits. `buffer` is then the result only, and the `input` of reduceScatter null. avg divides by the
   * number of all addends.
   */
  readonly contributions?: readonly BufferLike[];
}
export interface AllReduceOptions extends ReduceOptions {
  /**
   * What travels between hosts, for sum and avg of float32: every rank's values (inside a host, their sums) and the
   * result are rounded. 'bfloat16': to 8 bits of precision, half the bytes. 'int8': in blocks of 32, each element to
   * 1/127 of the block's largest or better, a quarter of the bytes. Default 'full'. The same on all ranks.
   */
  readonly wire?: Wire;
  /**
   * Error feedback, for wire 'int8' and one buffer: a Float32Array of the same length, zeros at first, one for each
   * buffer that is reduced again and again. What rounding loses stays in it, and is added the next time. The caller's
   * own; read and written until the operation has settled. Default: none.
   */
  readonly residual?: BufferLike;
}
export interface RootOptions extends CollectiveOptions {
  /** The rank that sends to, or receives from, all. Default 0. The same on all ranks. */
  readonly root?: number;
}
export interface CountsOptions extends CollectiveOptions {
  /** Elements of each rank's part, where they differ. The same on all ranks. */
  readonly counts?: readonly number[];
}
export interface AllToAllOptions extends CollectiveOptions {
  /** Elements that this rank sends to each rank, where they differ; with `recvCounts`. */
  readonly sendCounts?: readonly number[];
  /** Elements that this rank receives from each rank: what that one's `sendCounts` say of this rank. */
  readonly recvCounts?: readonly number[];
}
export interface MessageOptions extends CallOptions {
  /** A receive takes messages of its own tag only. 0 to 2^29 - 1; default 0. */
  readonly tag?: number;
}

/** A message of a batch(). */
export type Message =
  | { readonly send: BufferLike; readonly to: number; readonly tag?: number }
  | { readonly recv: BufferLike; readonly from: Source; readonly tag?: number };

/** What recvObject() gives. */
export interface Received<T> {
  readonly value: T;
  /** The sender's rank. */
  readonly source: number;
}

export interface SubgroupOptions {
  /** Appears in error messages. Default: the parent's name and the ranks there, such as "world[0,2]". */
  readonly name?: string;
  /** Default deadline of the operations, in milliseconds. Default: the parent's. */
  readonly timeoutMs?: number;
}

export interface ShrinkOptions extends SubgroupOptions {
  /** Ranks to leave out. Default: those that the group's failure names. */
  readonly without?: readonly number[];
  /** Milliseconds to wait for the other survivors; who has not come by then is left out too. Default 10,000. */
  readonly waitMs?: number;
}
