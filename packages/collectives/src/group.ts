// A group of ranks and the verbs on it: the only place where arguments are checked. Each verb exists twice, like
// Node's fs: the plain form starts the operation and returns a Work, the Sync form blocks until it has ended.
//
// An argument error is reported before anything is sent, so it does not harm the group: the Sync form throws it,
// the plain form returns a Work that rejects with it. Every other error poisons the group for good.
import type { Backend, Operation, ReduceOp, Supports, Verb } from './backend.ts';
import { type ArrayOf, asBuffer, type BufferLike } from './buffer.ts';
import { type Checked, faultOf } from './check.ts';
import { type DType, dtypes } from './dtype.ts';
import {
  aborted,
  badAllocCount,
  CollectiveError,
  cannotBlock,
  type Failure,
  failedEarlier,
  groupClosed,
  memoryNotVisible,
  systemFailure,
  unknownDtype,
} from './errors.ts';
import { Work } from './work.ts';

export interface CallOptions {
  /** Milliseconds until the operation fails with ERR_COLL_TIMEOUT. Default: the group's. */
  readonly timeoutMs?: number;
}
export interface ReduceOptions extends CallOptions {
  /** Default 'sum'. The same on all ranks. */
  readonly op?: ReduceOp;
  /** What this rank's elements are multiplied by; for 'premulSum' only. */
  readonly factor?: number;
}
export interface BroadcastOptions extends CallOptions {
  /** The rank whose buffer is sent to all. Default 0. */
  readonly root?: number;
}

export interface GroupOptions {
  /** Appears in error messages. */
  readonly name: string;
  readonly timeoutMs: number;
  /** Runs once, after the backend has left the group. */
  readonly onClose?: () => Promise<void>;
}

/** What alloc() returns: a typed array, or `{ data, dtype }` for the types that have none. */
export type Allocated<D extends DType> = D extends 'float16' | 'bfloat16' | 'bool'
  ? { readonly data: ArrayOf<D>; readonly dtype: D }
  : ArrayOf<D>;

const none: CallOptions & ReduceOptions & BroadcastOptions = Object.freeze({});

/**
 * All ranks make the same calls in the same order. Buffers belong to the group from the call until the operation
 * has ended: do not write to them, do not read results, do not transfer them. Two pending operations must not share
 * memory. Operations run in call order; only sends and receives with no collective between them run together, so
 * that every rank may start both directions and then await them.
 */
export class Group implements Checked {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /** Name of the backend, such as 'host'. */
  readonly backend: string;
  readonly supports: Supports;
  /** Default deadline of the operations, in milliseconds. */
  readonly timeoutMs: number;
  readonly #backend: Backend;
  readonly #onClose: (() => Promise<void>) | undefined;
  // Operations so far: collectives, and those to and from each rank.
  #collectives = 0;
  readonly #sends: number[];
  readonly #recvs: number[];
  #failure: CollectiveError | null = null;
  #closing: Promise<void> | null = null;

  constructor(backend: Backend, options: GroupOptions) {
    this.name = options.name;
    this.rank = backend.rank;
    this.size = backend.size;
    this.backend = backend.name;
    this.supports = backend.supports;
    this.timeoutMs = options.timeoutMs;
    this.#backend = backend;
    this.#onClose = options.onClose;
    this.#sends = new Array<number>(backend.size).fill(0);
    this.#recvs = new Array<number>(backend.size).fill(0);
  }

  /** The first error, after which every call fails; null while the group works. */
  get failure(): CollectiveError | null {
    return this.#failure;
  }

  get isClosed(): boolean {
    return this.#closing !== null;
  }

  /** Replaces `buffer` on every rank by the reduction of all ranks' buffers. */
  allReduce(buffer: BufferLike, options: ReduceOptions = none): Work {
    return this.#start('allReduce', () => this.#allReduce(buffer, options));
  }
  allReduceSync(buffer: BufferLike, options: ReduceOptions = none): void {
    this.#checkBlocking('allReduce');
    this.#run(this.#allReduce(buffer, options));
  }

  /** Copies the root's `buffer` into that of every other rank. */
  broadcast(buffer: BufferLike, options: BroadcastOptions = none): Work {
    return this.#start('broadcast', () => this.#broadcast(buffer, options));
  }
  broadcastSync(buffer: BufferLike, options: BroadcastOptions = none): void {
    this.#checkBlocking('broadcast');
    this.#run(this.#broadcast(buffer, options));
  }

  /** Writes all ranks' `input`, in rank order, to `output`, which is `size` times as long and separate memory. */
  allGather(input: BufferLike, output: BufferLike, options: CallOptions = none): Work {
    return this.#start('allGather', () => this.#allGather(input, output, options));
  }
  allGatherSync(input: BufferLike, output: BufferLike, options: CallOptions = none): void {
    this.#checkBlocking('allGather');
    this.#run(this.#allGather(input, output, options));
  }

  /** Reduces all ranks' `input`, cuts the result into `size` parts, and writes part `rank` to `output`. */
  reduceScatter(input: BufferLike, output: BufferLike, options: ReduceOptions = none): Work {
    return this.#start('reduceScatter', () => this.#reduceScatter(input, output, options));
  }
  reduceScatterSync(input: BufferLike, output: BufferLike, options: ReduceOptions = none): void {
    this.#checkBlocking('reduceScatter');
    this.#run(this.#reduceScatter(input, output, options));
  }

  /** Sends to one rank, which must call recv() with the same count and dtype. May end before it does. */
  send(buffer: BufferLike, to: number, options: CallOptions = none): Work {
    return this.#start('send', () => this.#pair('send', buffer, to, options));
  }
  sendSync(buffer: BufferLike, to: number, options: CallOptions = none): void {
    this.#checkBlocking('send');
    this.#run(this.#pair('send', buffer, to, options));
  }

  /** Receives what rank `from` sends to this rank. */
  recv(buffer: BufferLike, from: number, options: CallOptions = none): Work {
    return this.#start('recv', () => this.#pair('recv', buffer, from, options));
  }
  recvSync(buffer: BufferLike, from: number, options: CallOptions = none): void {
    this.#checkBlocking('recv');
    this.#run(this.#pair('recv', buffer, from, options));
  }

  /** Ends when every rank has called it. */
  barrier(options: CallOptions = none): Work {
    return this.#start('barrier', () => this.#barrier(options));
  }
  barrierSync(options: CallOptions = none): void {
    this.#checkBlocking('barrier');
    this.#run(this.#barrier(options));
  }

  /** Zeroed memory that the backend reaches without a copy where it can. Not collective. */
  alloc<D extends DType = 'float32'>(count: number, dtype: D = 'float32' as D): Allocated<D> {
    this.#checkOpen('alloc');
    if (!Number.isSafeInteger(count) || count < 0) throw this.#error(badAllocCount(String(count)));
    if (!dtypes.includes(dtype)) throw this.#error(unknownDtype('alloc', String(dtype), dtypes));
    const { host: data } = this.#backend.alloc(count, dtype);
    if (data === null) throw this.#error(memoryNotVisible(this.backend));
    const isPlain = dtype !== 'float16' && dtype !== 'bfloat16' && dtype !== 'bool';
    return (isPlain ? data : { data, dtype }) as Allocated<D>;
  }

  /** Fails everything pending and later on all ranks with ERR_COLL_ABORTED. Does not block. */
  abort(reason: unknown = 'no reason given'): void {
    if (this.#failure !== null || this.isClosed) return;
    const isError = reason instanceof Error;
    const failure = aborted(this.rank, isError ? reason.message : String(reason));
    this.#failure = this.#error(failure, isError ? { cause: reason } : undefined);
    this.#backend.abort(this.#failure);
  }

  /** Waits until what is pending has ended, well or badly, then leaves the group. Later calls fail. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #leave(): Promise<void> {
    try {
      await this.#backend.close();
    } finally {
      await this.#onClose?.();
    }
  }

  // The builders check the group first and the arguments second, and number the operation last: a call that is
  // refused takes no number.

  #allReduce(like: BufferLike, options: ReduceOptions): Operation {
    this.#checkOpen('allReduce');
    const buffer = asBuffer(like, 'allReduce');
    const { timeoutMs = this.timeoutMs, op = 'sum' } = options;
    const factor = options.factor ?? defaultFactor(op);
    return this.#accept({ verb: 'allReduce', seq: this.#collectives, timeoutMs, buffer, op, factor });
  }

  #broadcast(like: BufferLike, options: BroadcastOptions): Operation {
    this.#checkOpen('broadcast');
    const buffer = asBuffer(like, 'broadcast');
    const { timeoutMs = this.timeoutMs, root = 0 } = options;
    return this.#accept({ verb: 'broadcast', seq: this.#collectives, timeoutMs, buffer, root });
  }

  #allGather(from: BufferLike, to: BufferLike, options: CallOptions): Operation {
    this.#checkOpen('allGather');
    const input = asBuffer(from, 'allGather');
    const output = asBuffer(to, 'allGather');
    const { timeoutMs = this.timeoutMs } = options;
    return this.#accept({ verb: 'allGather', seq: this.#collectives, timeoutMs, input, output });
  }

  #reduceScatter(from: BufferLike, to: BufferLike, options: ReduceOptions): Operation {
    this.#checkOpen('reduceScatter');
    const input = asBuffer(from, 'reduceScatter');
    const output = asBuffer(to, 'reduceScatter');
    const { timeoutMs = this.timeoutMs, op = 'sum' } = options;
    const factor = options.factor ?? defaultFactor(op);
    return this.#accept({
      verb: 'reduceScatter',
      seq: this.#collectives,
      timeoutMs,
      input,
      output,
      op,
      factor,
    });
  }

  #barrier(options: CallOptions): Operation {
    this.#checkOpen('barrier');
    const { timeoutMs = this.timeoutMs } = options;
    return this.#accept({ verb: 'barrier', seq: this.#collectives, timeoutMs });
  }

  #accept(operation: Operation): Operation {
    const fault = faultOf(this, operation);
    if (fault !== null) throw this.#error(fault);
    this.#collectives++;
    return operation;
  }

  #pair(verb: 'send' | 'recv', like: BufferLike, peer: number, options: CallOptions): Operation {
    this.#checkOpen(verb);
    const buffer = asBuffer(like, verb);
    const counts = verb === 'send' ? this.#sends : this.#recvs;
    const seq = counts[peer] ?? 0;
    const operation: Operation = { verb, seq, timeoutMs: options.timeoutMs ?? this.timeoutMs, buffer, peer };
    const fault = faultOf(this, operation);
    if (fault !== null) throw this.#error(fault);
    counts[peer] = seq + 1;
    return operation;
  }

  #start(verb: Verb, build: () => Operation): Work {
    let operation: Operation;
    try {
      operation = build();
    } catch (error) {
      return new Work(verb, -1, this, (settle) => {
        settle(error as CollectiveError);
        return null;
      });
    }
    return new Work(verb, operation.seq, this, (settle) => {
      try {
        return this.#backend.start(operation, (error) => settle(error && this.#poison(error)));
      } catch (error) {
        settle(this.#poison(error));
        return null;
      }
    });
  }

  #run(operation: Operation): void {
    try {
      this.#backend.run(operation);
    } catch (error) {
      throw this.#poison(error);
    }
  }

  #poison(error: unknown): CollectiveError {
    const known = CollectiveError.is(error)
      ? error
      : this.#error(systemFailure('backend', null, String(error)), { cause: error });
    this.#failure ??= known;
    return known;
  }

  #checkOpen(verb: string): void {
    if (this.#closing !== null) throw this.#error(groupClosed(verb));
    if (this.#failure !== null)
      throw this.#error(failedEarlier(verb, this.#failure), { cause: this.#failure });
  }

  #checkBlocking(verb: Verb): void {
    if (!this.supports.sync) throw this.#error(cannotBlock(verb, this.backend));
  }

  #error(failure: Failure, options?: ErrorOptions): CollectiveError {
    return new CollectiveError(failure, { group: this.name, rank: this.rank, size: this.size }, options);
  }
}

// NaN where the caller must state one; see check.ts.
function defaultFactor(op: ReduceOp): number {
  return op === 'premulSum' ? Number.NaN : 1;
}
