// The contract that every backend implements. `Group` checks all arguments before it calls a backend: shapes
// fit, dtype, op and device are in `supports`, roots and peers are ranks of the group. The group itself
// builds lists, several buffers in one call, objects, monitoredBarrier and subgroups from these operations.
//
// The contract suite (packages/collectives/contract) checks that every backend keeps these promises:
// - Collectives on one group run in call order. Starting one never blocks the JavaScript thread.
// - Sends and receives are not ordered with collectives and run beside them. A receive takes the first
//   message that matches its sender and tag; messages from one sender with one tag are received in the order
//   of the sends.
// - The backend borrows buffers from start until settle. No other code reads or writes them in that time.
// - Results are bitwise equal on all ranks, and equal from run to run at the same group size.
// - Integers wrap. A NaN on any rank makes min and max NaN.
// - If ranks disagree about an operation (its signature, see group/signature.ts), both sides report the
//   mismatch before any buffer is touched. A rank that only sends may report it at its next call.
// - After the first error, every pending and later operation on every rank settles with the same root cause.
// - A lost rank is reported at once, a missing rank at the deadline. The error names the rank.
// - Size 1 works, count 0 works, and close() during an operation never crashes.

import type { Verb } from './all-verbs.ts';
import type { DType } from './dtype.ts';
import type { CollectiveError, Failure } from './errors.ts';
import type { FlightEntry } from './flight/entry.ts';
import type { BufferView, DeviceKind } from './group/buffer.ts';
import type { ReduceOp } from './reduce-ops.ts';

/**
 * What an allReduce sends between hosts: the full values, or values rounded to this type (int8: with scales).
 */
export type Wire = 'full' | 'bfloat16' | 'int8';

interface Common {
  /**
   * Index among the group's collectives. For send (recv): index among this rank's sends to (receives from)
   * that peer.
   */
  readonly seq: number;
  /** Milliseconds from the start of the operation until it fails with ERR_COLL_TIMEOUT. */
  readonly timeoutMs: number;
}
interface Collective extends Common {
  /**
   * Digest of further facts that the ranks must agree on, such as the lengths of the buffers that were packed into this
   * one: 0 to 2^31 - 1, 0 for none. Part of the signature.
   */
  readonly packing: number;
  /** Name that the caller gave the operation; undefined if none. Part of the signature. */
  readonly label?: string | undefined;
}
interface Reduction {
  readonly op: ReduceOp;
  /** This rank's factor for 'premulSum', otherwise 1. */
  readonly factor: number;
  /**
   * True: a sum or avg of floating-point numbers whose bits are those that reproducible/grid.ts defines. Only for verbs
   * for which `Backend.reproduces` returns true. Part of the signature.
   */
  readonly reproducible?: boolean | undefined;
}
interface Parted {
  /** Elements of each rank's part, the same list on all ranks; null if all parts have the same length. */
  readonly counts: readonly number[] | null;
}

/** `buffer` is both input and result, on every rank. */
export interface AllReduce extends Collective, Reduction {
  readonly verb: 'allReduce';
  readonly buffer: BufferView;
  /**
   * 'bfloat16' and 'int8' only for sum and avg of float32. Part of the signature. A backend within one host
   * may ignore it.
   */
  readonly wire: Wire;
  /**
   * Null, or for wire 'int8' a float32 buffer as long as `buffer`: the error feedback. The backend adds it to
   * the values before it rounds them and overwrites it with the rounding error. Not part of the signature. A
   * backend that ignores `wire` does not touch it.
   */
  readonly residual: BufferView | null;
}
/** `buffer` is the input, and on `root` also the result. Other ranks' buffers are not modified. */
export interface Reduce extends Collective, Reduction {
  readonly verb: 'reduce';
  readonly buffer: BufferView;
  readonly root: number;
}
/** Copies the root's `buffer` into the `buffer` of every other rank. */
export interface Broadcast extends Collective {
  readonly verb: 'broadcast';
  readonly buffer: BufferView;
  readonly root: number;
}
/** `output` receives the inputs of all ranks, concatenated in rank order. */
export interface AllGather extends Collective, Parted {
  readonly verb: 'allGather';
  readonly input: BufferView;
  readonly output: BufferView;
}
/** Like allGather, but only `root` has an `output`; it is null on other ranks. */
export interface Gather extends Collective, Parted {
  readonly verb: 'gather';
  readonly input: BufferView;
  readonly output: BufferView | null;
  readonly root: number;
}
/** Sends part r of the root's `input` to rank r. `input` is null on other ranks. */
export interface Scatter extends Collective, Parted {
  readonly verb: 'scatter';
  readonly input: BufferView | null;
  readonly output: BufferView;
  readonly root: number;
}
/**
 * `input` holds one part for each rank. Rank r receives the reduction of all ranks' part r. `input` is not
 * modified.
 */
export interface ReduceScatter extends Collective, Reduction, Parted {
  readonly verb: 'reduceScatter';
  readonly input: BufferView;
  readonly output: BufferView;
}
/**
 * Part r of `input` goes to rank r; part r of `output` comes from rank r. Without counts, all parts of this
 * rank have the same length. Lengths are not part of the signature: what one rank sends to another must have
 * the length that the receiver expects.
 */
export interface AllToAll extends Collective {
  readonly verb: 'allToAll';
  readonly input: BufferView;
  readonly output: BufferView;
  /** `sendCounts` and `recvCounts` are both given or both null. */
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
/** Settles with the sender's rank. A message with another count or dtype is a mismatch. */
export interface Recv extends Common {
  readonly verb: 'recv';
  readonly buffer: BufferView;
  /** Rank of the sender; -1 to receive from any rank. */
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
/** An operation as a backend gets it, with all arguments checked by Group. */
export type Operation = CollectiveOperation | Send | Recv;

/**
 * Called once per operation, on the JavaScript thread, never from inside `start`. `source` is the sender's
 * rank of a recv that succeeded.
 */
export type Settle = (error?: CollectiveError, source?: number) => void;

/** An operation that the backend has started. */
export interface Running {
  /** Blocks the calling thread until the operation has ended; its `settle` has been called when this returns. */
  readonly wait: () => void;
  /**
   * For device memory: makes the memory's stream wait for the operation and returns without blocking this
   * thread. If the operation has failed by then, calls its `settle` first. Absent if the backend supports
   * only `wait`.
   */
  readonly fence?: () => void;
  /**
   * Tells the backend that a caller awaits the operation, so it must progress without `wait`. Until then the
   * backend need not progress it.
   */
  readonly requestProgress?: () => void;
  /**
   * Does what requestProgress() does, but may first work on the operation on this thread for less than 50 µs. If it
   * ends in that time, its `settle` has been called when this returns. Absent if the backend cannot.
   */
  readonly attempt?: () => void;
}

/** What a backend can do. Group refuses other calls with ERR_COLL_UNSUPPORTED before it calls the backend. */
export interface Supports {
  /** Kinds of devices whose memory operations take. */
  readonly devices: readonly DeviceKind[];
  /** Verbs that the backend runs. */
  readonly verbs: readonly Verb[];
  /** Whether operations may block the calling thread, as the Sync verbs and `Work.fence()` do. */
  readonly sync: boolean;
  /**
   * Returns whether `op` is defined on `dtype`. `device` (default 'cpu') matters for backends with several
   * kinds of devices.
   */
  readonly reduces: (op: ReduceOp, dtype: DType, device?: DeviceKind) => boolean;
}

/** An operation of a step that is being captured into a CUDA graph; see group/captured.ts. */
export interface CapturedOperation {
  /** Orders everything that is captured from now on after the operation, then settles it. */
  readonly join: () => void;
  /** Settles the operation because the capture was abandoned. */
  readonly forget: () => void;
}

/** One launch of a captured step. */
export interface Run {
  readonly seq: number;
  readonly timeoutMs: number;
  /** Description of the step's operations. All ranks must launch the same. */
  readonly contents: string;
  /** True for the first launch of the step. */
  readonly isFirst: boolean;
  /** The CUstream that the step is launched on. */
  readonly stream: bigint;
}

/** Implemented by backends whose operations can be captured into CUDA graphs. */
export interface StepCaptures {
  /**
   * Returns why an operation cannot be captured although it uses the step's own memory, or null if it can. If
   * absent, all operations can be captured.
   */
  readonly refuses?: (operation: Operation) => string | null;
  /**
   * Captures an operation into step `step`, on the stream of its memory. Ranks compare it now; the device
   * executes it only when the step is launched.
   */
  readonly add: (operation: Operation, step: number, settle: Settle) => CapturedOperation;
  /**
   * Prepares a launch, which is ordered after all operations started so far. Throws if the step must not be
   * launched. Returns a function to call once the step has been launched. `settle` is called when the
   * launched step ends.
   */
  readonly run: (run: Run, settle: Settle) => () => void;
}

/**
 * An implementation of the contract at the top of this file, for one rank of one group. Group alone calls
 * it.
 */
export interface Backend {
  /** Version of this contract. */
  readonly contract: 1;
  /** Name under which the backend is registered, for error messages and group.backend. */
  readonly name: string;
  /** Rank of this process in the group. */
  readonly rank: number;
  /** Number of ranks of the group. */
  readonly size: number;
  /** What the backend can do. Does not change. */
  readonly supports: Supports;
  /**
   * Returns why this rank cannot run an operation that `supports` allows, or null if it can. Called before anything is
   * sent: the group refuses the call then, and goes on working. If absent, all operations can be run.
   */
  readonly refuses?: (operation: Operation) => Failure | null;
  /**
   * Returns whether the backend runs `reproducible` reductions of this verb itself; equal on all ranks. If absent, the
   * group makes them from two operations.
   */
  readonly reproduces?: (verb: Verb) => boolean;
  /**
   * Starts an operation and returns at once. Returns null if `supports.sync` is false. If it throws, the group fails
   * with that error and calls abort(), because the other ranks may have started theirs.
   */
  readonly start: (operation: Operation, settle: Settle) => Running | null;
  /**
   * Runs an operation on the calling thread, after all collectives that were started before; blocks until it
   * has ended. Returns the sender's rank of a recv. Throws the operation's error. Never called if
   * `supports.sync` is false.
   */
  readonly run: (operation: Operation) => number | undefined;
  /**
   * Calls `begin`, which starts the operations of one call, so that the backend may batch them. `begin` waits
   * for none of them. Absent if the backend does not batch.
   */
  readonly together?: (begin: () => void) => void;
  /**
   * Returns zeroed memory, chosen so that collectives can avoid a copy; host memory on all built-in backends.
   * Host memory is a typed array of the dtype: Uint16Array for float16 and bfloat16, Uint8Array for bool and
   * 8-bit floats.
   */
  readonly alloc: (count: number, dtype: DType) => BufferView;
  /**
   * Announces device memory that collectives will often use as a whole, so that the backend may register it
   * with the device's network once. Returns a function that ends the registration. Collective: all ranks
   * register and deregister at the same points in their sequence of collectives. The backend holds the memory
   * until the registration or the group ends. Absent if the backend gains nothing from it.
   */
  readonly register?: (buffer: BufferView) => () => void;
  /** Absent on backends that run operations on the host: a captured step can contain device work only. */
  readonly captures?: StepCaptures;
  /** The host backend's native group, for backends on top of it. */
  readonly native?: object;
  /**
   * Returns why the ranks cannot continue together, also while no operation runs: the root cause if the group has
   * failed, or the loss of a rank. Null if they can. If absent, only operations notice a loss.
   */
  readonly failure?: () => Failure | null;
  /**
   * Returns the loss of all ranks that are lost so far, also after another failure; null if none is. If absent, the
   * survivors of a failure do not notice a further loss while they connect.
   */
  readonly losses?: () => Failure | null;
  /** Returns this rank's latest calls in order. If absent, the group keeps the record itself. */
  readonly flightRecord?: () => readonly FlightEntry[];
  /**
   * Fails everything pending and later on all ranks with the `code`, `peers` and `what` of `cause`, unless the
   * group has failed before. For a code that only one rank can have, such as ERR_COLL_UNSUPPORTED, the other
   * ranks may report ERR_COLL_ABORTED.
   */
  readonly abort: (cause: CollectiveError) => void;
  /** Resolves when everything pending has ended and the rank has left. Idempotent. */
  readonly close: () => Promise<void>;
}
