// What the author of a backend writes. `Group` has checked every argument before a backend sees an operation:
// shapes fit, dtype, op and device are in `supports`, roots and peers are ranks of the group.
//
// The promises that the contract suite (testing.ts) holds every backend to:
//  - operations on one group run in call order, except that sends and receives with no collective between them run
//    together; starting one never blocks JavaScript;
//  - buffers are borrowed from start until settle, and read or written by nobody else;
//  - results are bitwise equal on all ranks, and from run to run at the same size;
//  - integers wrap; NaN on any rank makes min and max NaN;
//  - ranks that disagree about an operation are told so, on both sides, before a buffer is touched (a rank that only
//    sends may be told at its next call);
//  - after the first error, every pending and later operation on every rank settles with the same root cause;
//  - a lost rank is noticed at once, a missing one at the deadline, and the error names it;
//  - size 1 works, count 0 works, close during an operation never crashes.
import type { BufferView, DeviceKind } from './buffer.ts';
import type { DType } from './dtype.ts';
import type { CollectiveError } from './errors.ts';

export type ReduceOp = 'sum' | 'avg' | 'prod' | 'min' | 'max' | 'band' | 'bor' | 'bxor' | 'premulSum';

interface Common {
  /** Position in the group's sequence; for send and recv, in that pair's own sequence. */
  readonly seq: number;
  /** Milliseconds from the start of the operation until it fails with ERR_COLL_TIMEOUT. */
  readonly timeoutMs: number;
}

/** `buffer` is both input and result, on every rank. */
export interface AllReduce extends Common {
  readonly verb: 'allReduce';
  readonly buffer: BufferView;
  readonly op: ReduceOp;
  /** This rank's factor for 'premulSum', otherwise 1. */
  readonly factor: number;
}
/** `buffer` of `root` is copied into everyone's. */
export interface Broadcast extends Common {
  readonly verb: 'broadcast';
  readonly buffer: BufferView;
  readonly root: number;
}
/** `output` holds size × input.count elements: rank r's input lands at r × input.count. */
export interface AllGather extends Common {
  readonly verb: 'allGather';
  readonly input: BufferView;
  readonly output: BufferView;
}
/** `input` holds size × output.count elements; rank r receives the reduced part r. `input` is not modified. */
export interface ReduceScatter extends Common {
  readonly verb: 'reduceScatter';
  readonly input: BufferView;
  readonly output: BufferView;
  readonly op: ReduceOp;
  readonly factor: number;
}
export interface Send extends Common {
  readonly verb: 'send';
  readonly buffer: BufferView;
  readonly peer: number;
}
export interface Recv extends Common {
  readonly verb: 'recv';
  readonly buffer: BufferView;
  readonly peer: number;
}
export interface Barrier extends Common {
  readonly verb: 'barrier';
}

export type Operation = AllReduce | Broadcast | AllGather | ReduceScatter | Send | Recv | Barrier;
export type Verb = Operation['verb'];

/** Called once per operation, on the JavaScript thread, never from inside `start`. */
export type Settle = (error?: CollectiveError) => void;

/** A running operation, as the backend knows it. */
export interface Running {
  /** Blocks the calling thread until the operation has ended; its `settle` has been called when this returns. */
  readonly wait: () => void;
}

export interface Supports {
  readonly devices: readonly DeviceKind[];
  readonly verbs: readonly Verb[];
  /** Whether the calling thread may block: the Sync verbs and `Work.fence()`. */
  readonly sync: boolean;
  /** Whether `op` is defined on `dtype`. */
  readonly reduces: (op: ReduceOp, dtype: DType) => boolean;
}

export interface Backend {
  readonly contract: 1;
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly supports: Supports;
  /** Starts an operation and returns at once. `null` where `supports.sync` is false. */
  readonly start: (operation: Operation, settle: Settle) => Running | null;
  /** Runs an operation to its end on the calling thread, after all that were started before; throws its error. */
  readonly run: (operation: Operation) => void;
  /**
   * Memory on this backend's device that collectives reach without a copy where they can. Zeroed. Host memory is a
   * typed array of the dtype: Uint16Array for float16 and bfloat16, Uint8Array for bool.
   */
  readonly alloc: (count: number, dtype: DType) => BufferView;
  /** Ends everything pending on all ranks; the others report the same `code`, `peers` and `what` as `cause`. */
  readonly abort: (cause: CollectiveError) => void;
  /** Waits for what is pending, then leaves. Idempotent. */
  readonly close: () => Promise<void>;
}
