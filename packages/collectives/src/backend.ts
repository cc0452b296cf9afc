// What the author of a backend writes. `Group` has checked every argument before a backend sees an operation:
// shapes fit, dtype, op and device are in `supports`, roots and peers are ranks of the group. Lists, many buffers in
// one call, objects, monitoredBarrier and subgroups are made of these operations by the group.
//
// The promises that the contract suite (testing.ts) holds every backend to:
//  - collectives on one group run in call order; starting one never blocks JavaScript;
//  - sends and receives are no part of that order: they run beside collectives. A receive takes the first message
//    that fits its sender and tag; messages of one sender with one tag are received in the order of the sends;
//  - buffers are borrowed from start until settle, and read or written by nobody else;
//  - results are bitwise equal on all ranks, and from run to run at the same size;
//  - integers wrap; NaN on any rank makes min and max NaN;
//  - ranks that disagree about an operation (its signature, see signature.ts) are told so, on both sides, before a
//    buffer is touched (a rank that only sends may be told at its next call);
//  - after the first error, every pending and later operation on every rank settles with the same root cause;
//  - a lost rank is noticed at once, a missing one at the deadline, and the error names it;
//  - size 1 works, count 0 works, close during an operation never crashes.

import type { Verb } from './all-verbs.ts';
import type { DType } from './dtype.ts';
import type { CollectiveError } from './errors.ts';
import type { FlightEntry } from './flight/entry.ts';
import type { BufferView, DeviceKind } from './group/buffer.ts';
import type { ReduceOp } from './reduce-ops.ts';

/** What of an operation travels between hosts: the values, or the values rounded to that type (int8: with scales). */
export type Wire = 'full' | 'bfloat16' | 'int8';

interface Common {
  /** Position among the group's collectives; of a message: among this rank's sends to (receives from) that peer. */
  readonly seq: number;
  /** Milliseconds from the start of the operation until it fails with ERR_COLL_TIMEOUT. */
  readonly timeoutMs: number;
}
interface Collective extends Common {
  /**
   * Tells lists of buffers that were packed into one apart: a digest of their lengths, up to 2^31 - 1; 0 where
   * nothing is packed. Part of the signature.
   */
  readonly packing: number;
  /** What the caller calls it by: part of the signature. Left out, or undefined: nothing. */
  readonly label?: string | undefined;
}
interface Reduction {
  readonly op: ReduceOp;
  /** This rank's factor for 'premulSum', otherwise 1. */
  readonly factor: number;
}
interface Parted {
  /** Elements of each rank's part; null where all parts have the same length. The same on all ranks. */
  readonly counts: readonly number[] | null;
}

/** `buffer` is both input and result, on every rank. */
export interface AllReduce extends Collective, Reduction {
  readonly verb: 'allReduce';
  readonly buffer: BufferView;
  /** Not 'full' only for sum and avg of float32. Part of the signature. A backend within one host need not heed it. */
  readonly wire: Wire;
  /**
   * Only for wire 'int8', or null: float32, as long as `buffer`. Added to what is rounded, and overwritten with what
   * rounding has lost. No part of the signature; left alone by a backend that does not heed the wire.
   */
  readonly residual: BufferView | null;
}
/** `buffer` is the input, and on `root` the result; elsewhere it is not modified. */
export interface Reduce extends Collective, Reduction {
  readonly verb: 'reduce';
  readonly buffer: BufferView;
  readonly root: number;
}
/** `buffer` of `root` is copied into everyone's. */
export interface Broadcast extends Collective {
  readonly verb: 'broadcast';
  readonly buffer: BufferView;
  readonly root: number;
}
/** `output` holds all ranks' inputs, one after the other. */
export interface AllGather extends Collective, Parted {
  readonly verb: 'allGather';
  readonly input: BufferView;
  readonly output: BufferView;
}
/** Like allGather, but only `root` has an `output`. */
export interface Gather extends Collective, Parted {
  readonly verb: 'gather';
  readonly input: BufferView;
  readonly output: BufferView | null;
  readonly root: number;
}
/** The parts of the root's `input` go to the ranks in order; only `root` has an `input`. */
export interface Scatter extends Collective, Parted {
  readonly verb: 'scatter';
  readonly input: BufferView | null;
  readonly output: BufferView;
  readonly root: number;
}
/** `input` holds a part for each rank; rank r receives the reduction of all parts r. `input` is not modified. */
export interface ReduceScatter extends Collective, Reduction, Parted {
  readonly verb: 'reduceScatter';
  readonly input: BufferView;
  readonly output: BufferView;
}
/**
 * Part r of `input` goes to rank r; part r of `output` comes from rank r. Without counts all parts of this rank have
 * the same length. Lengths are no part of the signature: what a rank sends to another must be what that one expects.
 */
export interface AllToAll extends Collective {
  readonly verb: 'allToAll';
  readonly input: BufferView;
  readonly output: BufferView;
  /** Both or neither. */
  readonly sendCounts: readonly number[] | null;
  readonly recvCounts: readonly number[] | null;
}
export interface Barrier extends Collective {
  readonly verb: 'barrier';
}
export interface Send extends Common {
  readonly verb: 'send';
  readonly buffer: BufferView;
  readonly peer: number;
  /** 0 to 2^31 - 1. */
  readonly tag: number;
}
/** Settles with the sender's rank. A message of another count or dtype is a mismatch. */
export interface Recv extends Common {
  readonly verb: 'recv';
  readonly buffer: BufferView;
  /** -1: whoever sends first. */
  readonly peer: number;
  readonly tag: number;
}

export type CollectiveOperation =
  | AllReduce
  | Reduce
  | Broadcast
  | AllGather
  | Gather
  | Scatter
  | ReduceScatter
  | AllToAll
  | Barrier;
export type Operation = CollectiveOperation | Send | Recv;

/**
 * Called once per operation, on the JavaScript thread, never from inside `start`. `source` is the sender's rank of a
 * recv that ended well.
 */
export type Settle = (error?: CollectiveError, source?: number) => void;

/** A running operation, as the backend knows it. */
export interface Running {
  /** Blocks the calling thread until the operation has ended; its `settle` has been called when this returns. */
  readonly wait: () => void;
  /**
   * On a device: the stream of its memory waits for the operation, and this thread goes on. Absent where `wait` is the
   * only way. If the operation has failed by then, its `settle` has been called.
   */
  readonly fence?: () => void;
  /** Somebody awaits it, so it has to go on by itself. A backend may leave it alone until then. */
  readonly requestProgress?: () => void;
}

export interface Supports {
  readonly devices: readonly DeviceKind[];
  readonly verbs: readonly Verb[];
  /** Whether the calling thread may block: the Sync verbs and `Work.fence()`. */
  readonly sync: boolean;
  /** Whether `op` is defined on `dtype`; of several kinds of devices, on this one (default 'cpu'). */
  readonly reduces: (op: ReduceOp, dtype: DType, device?: DeviceKind) => boolean;
}

/** An operation of a step that is being captured; see group/captured.ts. */
export interface CapturedOperation {
  /** What the step does from now on comes after it. Settles it. */
  readonly join: () => void;
  /** The capture is given up. Settles it. */
  readonly forget: () => void;
}

/** A run of a captured step. */
export interface Run {
  readonly seq: number;
  readonly timeoutMs: number;
  /** What the step contains. All ranks run the same. */
  readonly contents: string;
  readonly isFirst: boolean;
  /** The CUstream that it goes to. */
  readonly stream: bigint;
}

/** What a backend does whose operations can be part of captured steps. */
export interface StepCaptures {
  /** Why an operation on a step's own memory cannot be part of it all the same; null where it can. Left out where all can. */
  readonly refuses?: (operation: Operation) => string | null;
  /** Makes an operation part of step `step`, on the stream of its memory. It is compared between the ranks, and not carried out. */
  readonly add: (operation: Operation, step: number, settle: Settle) => CapturedOperation;
  /**
   * Ahead of a run, which comes after all operations until now; throws where it must not be. Returns what is called when it has been
   * started. It settles at its end, as an operation does.
   */
  readonly run: (run: Run, settle: Settle) => () => void;
}

export interface Backend {
  readonly contract: 1;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly supports: Supports;
  /** Starts an operation and returns at once. `null` where `supports.sync` is false. */
  readonly start: (operation: Operation, settle: Settle) => Running | null;
  /**
   * Runs an operation to its end on the calling thread, a collective after all that were started before; throws its
   * error. Returns the sender's rank of a recv. Never called where `supports.sync` is false.
   */
  readonly run: (operation: Operation) => number | undefined;
  /**
   * Calls `begin`, which starts operations of one call: they may go out as one. Left out where that makes no difference.
   * Nothing waits for them before it returns.
   */
  readonly together?: (begin: () => void) => void;
  /**
   * Memory on this backend's device that collectives reach without a copy where they can. Zeroed. Host memory is a
   * typed array of the dtype: Uint16Array for float16 and bfloat16, Uint8Array for bool and floats of 8 bits.
   */
  readonly alloc: (count: number, dtype: DType) => BufferView;
  /**
   * Memory of a device that collectives will be called on often and as a whole, until the function that it returns is
   * called: the backend may make it known to the device's network once and for all. All ranks do both at the same places
   * among their collectives. Until then, or until the group is left, the backend holds the memory. Left out where it makes
   * no difference.
   */
  readonly register?: (buffer: BufferView) => () => void;
  /** Left out where operations happen on the host: what a captured step contains happens on its device alone. */
  readonly captures?: StepCaptures;
  /** The host backend's native group, for backends on top of it. */
  readonly native?: object;
  /** What this rank has called last, in order. A backend without it gets a record of its group's. */
  readonly flightRecord?: () => readonly FlightEntry[];
  /** Ends everything pending on all ranks; the others report the same `code`, `peers` and `what` as `cause`. */
  readonly abort: (cause: CollectiveError) => void;
  /** Waits for what is pending, then leaves. Idempotent. */
  readonly close: () => Promise<void>;
}
