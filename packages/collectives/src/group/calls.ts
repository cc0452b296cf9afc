// Runs the calls on one group, from the checked operation to its end. Every operation passes through #begin
// or #run, and every error through #poison. The verbs (verbs/) turn arguments into operations, and Group
// offers them to users.
//
// A call of several steps starts the operations of its next step when those of the last have ended.
// Collectives that the program calls in the meantime could be started between two steps, at different points
// on different ranks. They therefore wait in a queue until every operation of the earlier call has been
// started. Messages never wait.
import type {
  Backend,
  CollectiveOperation,
  Operation,
  Recv,
  Run,
  Running,
  Send,
  Settle,
  Supports,
} from '../backend.ts';
import {
  type CollectiveCode,
  CollectiveError,
  cannotBlock,
  type Failure,
  failedEarlier,
  groupClosed,
  notWritable,
  systemFailure,
} from '../errors.ts';
import type { FlightEntry } from '../flight/entry.ts';
import { FlightRecorder } from '../flight/recorder.ts';
import { Scratch } from '../reproducible/scratch.ts';
import type { BufferView } from './buffer.ts';
import { callSite, entering, inCallAt } from './call-site.ts';
import { type CapturedStep, CapturedSteps, captureNow } from './captured.ts';
import { type Checked, faultOf } from './check.ts';
import { writtenBy } from './operation-memory.ts';
import { type Call, isMessage, isOperation, Progress, type Starter, type Steps } from './steps.ts';
import { Work } from './work.ts';

/** A call of several operations, of any result type. */
type Waiting = Pick<
  Progress<never>,
  'isStarted' | 'isAllStarted' | 'hasEnded' | 'start' | 'requestProgress' | 'wait' | 'fence'
>;

export class Calls implements Checked {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly backend: string;
  readonly supports: Supports;
  readonly timeoutMs: number;
  readonly scratch: Scratch;
  readonly #backend: Backend;
  /** The object whose methods are the calls. Stack traces for call sites start at these methods. */
  readonly #caller: object;
  /** Null if the backend keeps a flight record itself. */
  readonly #recorder: FlightRecorder | null;
  readonly #captured: CapturedSteps;
  /** Number of collectives so far, which is the number of the next one. */
  #seq = 0;
  /** Number of messages so far by peer. The last element counts receives from any rank. */
  readonly #sends: number[];
  readonly #recvs: number[];
  #objects = 0;
  #failure: CollectiveError | null = null;
  #isClosed = false;
  /** Calls with collectives that are not all started yet, and the calls that wait behind them. */
  readonly #queue: Waiting[] = [];
  #isPumping = false;
  /** Calls of several operations that have not ended. */
  readonly #several = new Set<Waiting>();
  readonly #onIdle: (() => void)[] = [];

  constructor(backend: Backend, name: string, timeoutMs: number, caller: object) {
    this.name = name;
    this.rank = backend.rank;
    this.size = backend.size;
    this.backend = backend.name;
    this.supports = backend.supports;
    this.timeoutMs = timeoutMs;
    this.scratch = new Scratch(backend.alloc);
    this.#backend = backend;
    this.#caller = caller;
    this.#recorder = backend.flightRecord === undefined ? new FlightRecorder() : null;
    this.#captured = new CapturedSteps(backend, (step, stream) => this.#runCaptured(step, stream));
    this.#sends = new Array<number>(backend.size + 1).fill(0);
    this.#recvs = new Array<number>(backend.size + 1).fill(0);
  }

  get failure(): CollectiveError | null {
    return this.#failure;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }

  // Used by the verbs. A call checks the group first, then its arguments, and numbers its operations last, so
  // that a refused call takes no number.

  /** Sequence number of the next collective. */
  get seq(): number {
    return this.#seq;
  }

  /**
   * Checks a collective, notifies the owners of the memory that it writes, and takes a sequence number for
   * it. Throws if the collective is refused.
   */
  accept<O extends CollectiveOperation>(operation: O): O {
    this.check(operation);
    this.#tellOf(operation);
    this.#seq++;
    return operation;
  }

  acceptMessage<O extends Send | Recv>(operation: O): O {
    this.check(operation);
    this.#tellOf(operation);
    return this.countMessage(operation);
  }

  /** Like accept(), but the caller has already notified the owners with tell(). */
  acceptTold<O extends CollectiveOperation>(operation: O): O {
    this.check(operation);
    this.#seq++;
    return operation;
  }

  /** Takes a sequence number for a message that was checked and whose owners were notified. */
  countMessage<O extends Send | Recv>(operation: O): O {
    const { verb, peer } = operation;
    (verb === 'send' ? this.#sends : this.#recvs)[peer < 0 ? this.size : peer]!++;
    return operation;
  }

  /**
   * Notifies the owners of these buffers that an accepted call writes them; throws if one refuses. For calls
   * of several operations, or whose results are copied to the buffers. All `readOnly` are checked before the
   * first `written` is called, and the caller checks everything else before.
   */
  tell(verb: string, written: readonly BufferView[]): void {
    for (const { readOnly } of written) {
      if (readOnly !== undefined) throw this.error(notWritable(verb, readOnly.reason, readOnly.next));
    }
    for (const view of written) {
      try {
        view.written?.();
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw this.error(notWritable(verb, reason), { cause });
      }
    }
  }

  #tellOf(operation: Operation): void {
    const view = writtenBy(operation, this.rank);
    const residual = operation.verb === 'allReduce' ? operation.residual : null;
    if (view !== null && isWatched(view))
      this.tell(operation.verb, residual === null ? [view] : [view, residual]);
    else if (residual !== null && isWatched(residual)) this.tell(operation.verb, [residual]);
  }

  /** Takes the sequence number of a collective that a later step will start. */
  reserve(): number {
    return this.#seq++;
  }

  /** Throws the first fault of an operation. */
  check(operation: Operation): void {
    const fault = faultOf(this, operation) ?? this.#captured.faultOf(operation);
    if (fault !== null) throw this.error(fault);
  }

  /** Returns the sequence number of the next message to or from that peer; peer -1 stands for any rank. */
  messageSeq(verb: 'send' | 'recv', peer: number): number {
    return (verb === 'send' ? this.#sends : this.#recvs)[peer < 0 ? this.size : peer] ?? 0;
  }

  /** Returns a new number for an object that this rank sends. */
  nextObject(): number {
    return this.#objects++;
  }

  checkOpen(verb: string): void {
    if (this.#isClosed) throw this.error(groupClosed(verb));
    if (this.#failure !== null)
      throw this.error(failedEarlier(verb, this.#failure), { cause: this.#failure });
  }

  error(failure: Failure, options?: ErrorOptions): CollectiveError {
    return new CollectiveError(failure, { group: this.name, rank: this.rank, size: this.size }, options);
  }

  // Used by the group.

  /** Starts a call and returns at once. Argument errors do not throw: awaiting the Work rejects with them. */
  start<T>(name: string, build: () => Call<T>): Work<T> {
    let call: Call<T>;
    entering(this.#caller, name, false);
    try {
      this.checkOpen(name);
      call = build();
    } catch (error) {
      return new Work(name, -1, this, (finish) => {
        finish(error as CollectiveError);
        return null;
      });
    }
    return this.#launch(name, call);
  }

  /** Checks that a Sync call is possible now, before its arguments are processed. Throws if not. */
  blocking(name: string): this {
    if (!this.supports.sync) throw this.error(cannotBlock(name, this.backend));
    this.checkOpen(name);
    entering(this.#caller, name, true);
    return this;
  }

  /** Runs a call on this thread and blocks until it has ended. */
  run<T>(name: string, call: Call<T>): T {
    if (captureNow() !== null) return this.#launch(name, call).fence();
    if (isOperation(call)) return this.#runOne(call, name) as T;
    const [operation] = call.operations;
    if (operation === undefined || call.operations.length > 1 || 'more' in call) {
      return this.#launchSteps(name, call, true).fence();
    }
    return call.finish([this.#runOne(operation, name)]);
  }

  /** Fails all pending and later calls on all ranks; `cause` is the error on this rank. */
  abort(cause: CollectiveError): void {
    this.#failure ??= cause;
    this.#backend.abort(cause);
  }

  /** Makes the group refuse all later calls. */
  shut(): void {
    this.#isClosed = true;
  }

  /**
   * Waits until all pending calls have ended, then leaves the group. Rejects with an error that the backend
   * reports last.
   */
  async leave(): Promise<void> {
    for (const call of this.#several) call.requestProgress();
    if (this.#several.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    this.#captured.drop();
    try {
      await this.#backend.close();
    } catch (error) {
      throw this.#poison(error);
    }
  }

  flightRecord(): readonly FlightEntry[] {
    return this.#recorder?.entries() ?? this.#backend.flightRecord?.() ?? [];
  }

  register(buffer: BufferView): () => void {
    return this.#backend.register?.(buffer) ?? (() => {});
  }

  alloc: Backend['alloc'] = (count, dtype) => this.#backend.alloc(count, dtype);

  #launch<T>(name: string, call: Call<T>): Work<T> {
    if (!isOperation(call)) return this.#launchSteps(name, call);
    if (this.#queue.length > 0 && !isMessage(call.verb)) {
      return this.#launchSteps(name, { operations: [call], finish: () => undefined as T, isFenceable: true });
    }
    return new Work(name, call.seq, this, (finish) =>
      this.#begin(call, name, finish as (error?: CollectiveError, source?: number) => void),
    );
  }

  /** `isSync`: fencing the Work must wait until the call has ended, even on a device. */
  #launchSteps<T>(name: string, steps: Steps<T>, isSync = false): Work<T> {
    // Operations that are started later do not have the caller on the stack, so take its location now.
    const site = 'more' in steps || this.#queue.length > 0 ? callSite() : null;
    const starter: Starter = {
      ...this.#starter,
      begin: (operation, name, settle) => inCallAt(site, () => this.#begin(operation, name, settle)),
    };
    return new Work(name, steps.operations[0]?.seq ?? -1, this, (finish) => {
      const progress: Progress<T> = new Progress(name, steps, starter, (error, value) => {
        this.#several.delete(progress);
        finish(error, value);
        if (this.#several.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
      });
      this.#several.add(progress);
      if (steps.operations.every(({ verb }) => isMessage(verb))) {
        progress.start();
      } else {
        this.#queue.push(progress);
        this.#pump();
      }
      if (!this.supports.sync) return null;
      return {
        wait: () => this.#waitFor(progress),
        requestProgress: () => this.#requestProgress(progress),
        ...(!isSync && { fence: () => this.#fence(progress) }),
      };
    });
  }

  readonly #starter: Omit<Starter, 'begin'> = {
    together: (begin) => (this.#backend.together === undefined ? begin() : this.#backend.together(begin)),
    failed: (error) => (CollectiveError.is(error) && harmless.has(error.code) ? error : this.#poison(error)),
    allStarted: () => this.#pump(),
  };

  /** Starts queued calls in order, up to the first call that cannot start all of its operations yet. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      if (!head.isStarted) head.start();
      if (!head.isAllStarted) break;
      this.#queue.shift();
    }
    this.#isPumping = false;
  }

  #waitFor(progress: Waiting): void {
    while (!progress.hasEnded) (progress.isStarted ? progress : this.#queue[0])?.wait();
  }

  #fence(progress: Waiting): void {
    while (!progress.isStarted && !progress.hasEnded) this.#queue[0]?.wait();
    if (!progress.fence()) this.#waitFor(progress);
  }

  /** Requests progress of the call and of all queued calls before it, since it depends on them. */
  #requestProgress(progress: Waiting): void {
    for (const earlier of this.#queue) earlier.requestProgress();
    progress.requestProgress();
  }

  #begin(operation: Operation, name: string, settle: Settle): Running | null {
    const record = this.#recorder?.enter(operation);
    try {
      const ended: Settle = (error, source) => {
        record?.(error, source);
        settle(error && this.#poison(error, operation, name), source);
      };
      if (captureNow() !== null) return this.#captured.add(operation, ended);
      return this.#backend.start(operation, ended);
    } catch (error) {
      record?.(error);
      settle(this.#poison(error));
      return null;
    }
  }

  /**
   * Prepares a launch of a captured step, which is numbered like a collective. Returns a function to call
   * after the launch.
   */
  #runCaptured(step: CapturedStep, stream: bigint): () => void {
    const { timeoutMs } = this;
    let record: ((error?: unknown) => void) | undefined;
    try {
      this.checkOpen('capturedStep');
      while (this.#queue.length > 0) this.#queue[0]?.wait();
      const isFirst = step.runs++ === 0;
      const run: Run = { seq: this.#seq++, timeoutMs, contents: step.contents, isFirst, stream };
      record = this.#recorder?.enterRun(run);
      return this.#backend.captures!.run(run, (error) => {
        record?.(error);
        if (error !== undefined) this.#poison(error);
      });
    } catch (error) {
      record?.(error);
      this.#captured.drop();
      throw this.#isClosed ? error : this.#poison(error);
    }
  }

  #runOne(operation: Operation, name: string): number | undefined {
    if (!isMessage(operation.verb)) while (this.#queue.length > 0) this.#queue[0]?.wait();
    const record = this.#recorder?.enter(operation);
    try {
      const source = this.#backend.run(operation);
      record?.(undefined, source);
      return source;
    } catch (error) {
      record?.(error);
      throw this.#poison(error, operation, name);
    }
  }

  /**
   * Records the first error as the group's failure and returns it. If the error belongs to an operation of a
   * call, renames it to the call.
   */
  #poison(error: unknown, operation?: Operation, name?: string): CollectiveError {
    let known = CollectiveError.is(error)
      ? error
      : this.error(systemFailure('backend', null, String(error)), { cause: error });
    if (name !== undefined && name !== operation?.verb && isOf(known, operation)) {
      const { code, seq, peers, what, cause } = known;
      known = this.error({ code, verb: name, seq, peers, what }, cause === undefined ? undefined : { cause });
    }
    this.#failure ??= known;
    return known;
  }
}

const isWatched = ({ readOnly, written }: BufferView) => readOnly !== undefined || written !== undefined;

/**
 * Codes that do not poison the group: errors in this rank's arguments, or in data that all ranks exchanged
 * successfully.
 */
const harmless: ReadonlySet<CollectiveCode> = new Set(['ERR_COLL_INVALID', 'ERR_COLL_UNSUPPORTED']);

function isOf(error: CollectiveError, operation: Operation | undefined): boolean {
  return error.verb === operation?.verb && error.seq === operation.seq;
}
