// Runs the calls of a group. Hands each accepted operation to the backend, at once or in its turn (queue.ts),
// notes it in the flight record, and makes its error the group's. Every operation passes through #begin or
// #runOne.
import type { Backend, Operation, Run, Running, Settle } from '../backend.ts';
import { type CollectiveCode, CollectiveError, detachedBeforeTurn } from '../errors.ts';
import type { FlightEntry } from '../flight/entry.ts';
import { FlightRecorder } from '../flight/recorder.ts';
import { textOfMissingRanks } from '../verbs/monitored-barrier.ts';
import type { Admission } from './admission.ts';
import { callSite, inCallAt } from './call-site.ts';
import { addCallSite } from './caller-line.ts';
import { type CapturedStep, CapturedSteps, captureNow } from './captured.ts';
import { hasDetached } from './operation-memory.ts';
import { CallQueue } from './queue.ts';
import type { GroupState } from './state.ts';
import { type Call, isMessage, isOperation, Progress, type Starter, type Steps } from './steps.ts';
import { type Finish, Work } from './work.ts';

export class Runner {
  readonly #backend: Backend;
  readonly #state: GroupState;
  /** For launches of captured steps, which are numbered here because no verb makes them. */
  readonly #admission: Admission;
  /** Null if the backend keeps a flight record itself. */
  readonly #recorder: FlightRecorder | null;
  readonly #captured: CapturedSteps;
  readonly #queue = new CallQueue();

  constructor(backend: Backend, state: GroupState, admission: Admission) {
    this.#backend = backend;
    this.#state = state;
    this.#admission = admission;
    this.#recorder = backend.flightRecord === undefined ? new FlightRecorder() : null;
    this.#captured = new CapturedSteps(backend, (step, stream) => this.#runCaptured(step, stream));
  }

  /** Starts a call and returns at once. `name` is the name of the call. */
  start<T>(name: string, call: Call<T>): Work<T> {
    if (!isOperation(call)) return this.#startSteps(name, call);
    if (this.#queue.isBusy && !isMessage(call.verb)) {
      return this.#startSteps(name, { operations: [call], finish: () => undefined as T, isFenceable: true });
    }
    return new Work(name, call.seq, this.#state, (finish) =>
      this.#begin(call, name, finish as Finish<number>),
    );
  }

  /** Runs a call on this thread and blocks until it has ended. Never called if the backend may not block. */
  run<T>(name: string, call: Call<T>): T {
    if (captureNow() !== null) return this.start(name, call).fence();
    if (isOperation(call)) return this.#runOne(call, name) as T;
    const [operation] = call.operations;
    if (operation === undefined || call.operations.length > 1 || 'more' in call) {
      return this.#startSteps(name, call, true).fence();
    }
    return call.finish([this.#runOne(operation, name)]);
  }

  /** Fails all pending and later calls on all ranks; `cause` is the error on this rank. Returns it. */
  abort(cause: CollectiveError): CollectiveError {
    this.#state.fail(cause);
    this.#backend.abort(cause);
    return cause;
  }

  /**
   * Waits until all pending calls have ended, then leaves the group. Rejects with the error of the backend's
   * close().
   */
  async leave(): Promise<void> {
    await this.#queue.end();
    this.#captured.drop();
    try {
      await this.#backend.close();
    } catch (error) {
      throw this.#state.fail(error);
    }
  }

  flightRecord(): readonly FlightEntry[] {
    return this.#recorder?.entries() ?? this.#backend.flightRecord?.() ?? [];
  }

  /** `isSync`: fencing the Work must wait until the call has ended, even on a device. */
  #startSteps<T>(name: string, steps: Steps<T>, isSync = false): Work<T> {
    const queue = this.#queue;
    // Operations that are started later do not have the caller on the stack, so take its location now.
    const site = 'more' in steps || queue.isBusy ? callSite() : null;
    const starter: Starter = {
      ...this.#starter,
      begin: (operation, name, settle) => inCallAt(site, () => this.#begin(operation, name, settle, true)),
    };
    return new Work(name, steps.operations[0]?.seq ?? -1, this.#state, (finish) => {
      const progress: Progress<T> = new Progress(name, steps, starter, (error, value) => {
        finish(error, value);
        queue.remove(progress);
      });
      if (steps.operations.every(({ verb }) => isMessage(verb))) queue.addMessages(progress);
      else queue.addCollectives(progress);
      if (!this.#state.supports.sync) return null;
      return {
        wait: () => queue.waitFor(progress),
        requestProgress: () => queue.requestProgress(progress),
        ...(!isSync && { fence: () => queue.fence(progress) }),
      };
    });
  }

  readonly #starter: Omit<Starter, 'begin'> = {
    together: (startAll) =>
      this.#backend.together === undefined ? startAll() : this.#backend.together(startAll),
    failed: (error) => (CollectiveError.is(error) && harmless.has(error.code) ? error : this.#failAll(error)),
    allStarted: () => this.#queue.startReady(),
  };

  /** `isInTurn`: the operation may have waited for earlier calls since its buffers were checked. */
  #begin(operation: Operation, name: string, settle: Settle, isInTurn = false): Running | null {
    const record = this.#recorder?.enter(operation);
    try {
      const ended: Settle = (error, source) => {
        record?.(error, source);
        settle(error && this.#failedLater(error, operation, name), source);
      };
      if (captureNow() !== null) return this.#captured.add(operation, ended);
      // Native code would read the memory at address 0, which ends the process.
      if (isInTurn && hasDetached(operation))
        throw this.#state.error(detachedBeforeTurn(name, operation.seq, this.#state.rank));
      return this.#backend.start(operation, ended);
    } catch (error) {
      record?.(error);
      settle(this.#failAll(error, this.#failed(error, operation, name)));
      return null;
    }
  }

  #runOne(operation: Operation, name: string): number | undefined {
    if (!isMessage(operation.verb)) this.#queue.waitUntilFree();
    const record = this.#recorder?.enter(operation);
    try {
      const source = this.#backend.run(operation);
      record?.(undefined, source);
      return source;
    } catch (error) {
      record?.(error);
      throw this.#failAll(error, this.#failed(error, operation, name));
    }
  }

  /**
   * Prepares a launch of a captured step, which is numbered like a collective. Returns a function to call
   * after the launch.
   */
  #runCaptured(step: CapturedStep, stream: bigint): () => void {
    let record: ((error?: unknown) => void) | undefined;
    try {
      this.#state.checkOpen('capturedStep');
      this.#queue.waitUntilFree();
      const isFirst = step.runs++ === 0;
      const { timeoutMs } = this.#admission;
      const run: Run = {
        seq: this.#admission.reserve(),
        timeoutMs,
        contents: step.contents,
        isFirst,
        stream,
      };
      record = this.#recorder?.enterRun(run);
      return this.#backend.captures!.run(run, (error) => {
        record?.(error);
        if (error !== undefined) this.#state.fail(error);
      });
    } catch (error) {
      record?.(error);
      this.#captured.drop();
      this.#state.isReported = true;
      throw this.#state.isClosed ? error : this.#failAll(error);
    }
  }

  /**
   * Reports the group's failure `known`, which is an exception of this rank, to the other ranks, unless they find it
   * themselves. They would wait for this rank until their deadline.
   */
  #failAll(error: unknown, known = this.#state.fail(error)): CollectiveError {
    if (!CollectiveError.is(error) || !isFoundByAll.has(error.code)) this.#backend.abort(known);
    return known;
  }

  /** Does what #failed() does for a call that has returned: the first failure gets the place of the call. */
  #failedLater(error: unknown, operation: Operation, name: string): CollectiveError {
    const isFirst = this.#state.failure === null;
    const failure = this.#failed(error, operation, name);
    if (isFirst) addCallSite(failure, operation, this.flightRecord());
    return failure;
  }

  /** Makes the error of an operation the group's failure. The error names the call, not its operation. */
  #failed(error: unknown, operation: Operation, name: string): CollectiveError {
    if (name === operation.verb || !CollectiveError.is(error) || !isOf(error, operation))
      return this.#state.fail(error);
    const { code, seq, peers, cause } = error;
    const what = name === 'monitoredBarrier' ? textOfMissingRanks(error) : error.what;
    const options = cause === undefined ? undefined : { cause };
    return this.#state.fail(this.#state.error({ code, verb: name, seq, peers, what }, options));
  }
}

/**
 * Codes that do not fail the group when the steps of a call throw them: errors in this rank's arguments, or in data
 * that all ranks exchanged successfully. An error of an operation always fails it.
 */
const harmless: ReadonlySet<CollectiveCode> = new Set(['ERR_COLL_INVALID', 'ERR_COLL_UNSUPPORTED']);

/** Codes of errors that come from an exchange between the ranks, all of which report them. */
const isFoundByAll: ReadonlySet<CollectiveCode> = new Set([
  'ERR_COLL_TIMEOUT',
  'ERR_COLL_PEER_LOST',
  'ERR_COLL_MISMATCH',
  'ERR_COLL_ABORTED',
  'ERR_COLL_CLOSED',
]);

function isOf(error: CollectiveError, { verb, seq }: Operation): boolean {
  return error.verb === verb && error.seq === seq;
}
