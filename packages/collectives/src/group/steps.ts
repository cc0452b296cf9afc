// A call on a group consists of one operation or of several steps. The operations of a step are started
// together, when those of the step before have ended.

import type { Verb } from '../all-verbs.ts';
import type { Operation, Running, Settle } from '../backend.ts';
import type { CollectiveError } from '../errors.ts';
import type { Finish } from './work.ts';

/** For each operation of a step: the sender's rank for a recv, otherwise undefined. */
export type Sources = readonly (number | undefined)[];

export interface LastStep<T> {
  readonly operations: readonly Operation[];
  /**
   * Called when all operations have succeeded. Returns the value of the call. If it throws, the call fails with the
   * error that Starter.failed makes of it.
   */
  readonly finish: (sources: Sources) => T;
  /**
   * True if `finish` neither reads nor writes the operations' buffers and returns no value. Then the call is complete
   * on the device's stream as soon as its operations are fenced (see Running.fence).
   */
  readonly isFenceable?: boolean;
}
export interface EarlierStep<T> {
  readonly operations: readonly Operation[];
  /**
   * Called when all operations have succeeded. Returns the next step. If it throws, the call fails with the error that
   * Starter.failed makes of it.
   */
  readonly more: (sources: Sources) => Steps<T>;
}
export type Steps<T> = LastStep<T> | EarlierStep<T>;

/** A call of a single operation has the sender's rank as its value for a recv, otherwise undefined. */
export type Call<T> = Operation | Steps<T>;

export function isOperation<T>(call: Call<T>): call is Operation {
  return 'verb' in call;
}

/** Returns the steps with their final value mapped by `map`. They cannot be fenced, because `map` runs on the host. */
export function mapSteps<A, B>(steps: Steps<A>, map: (value: A) => B): Steps<B> {
  const { operations } = steps;
  if ('finish' in steps) return { operations, finish: (sources) => map(steps.finish(sources)) };
  return { operations, more: (sources) => mapSteps(steps.more(sources), map) };
}

/** Returns whether the verb is a send or a recv. These are not ordered with collectives. */
export function isMessage(verb: Verb): boolean {
  return verb === 'send' || verb === 'recv';
}

/** The functions of a group that a Progress calls. */
export interface Starter {
  /** Starts an operation of the call `name`. May call `settle` before it returns. */
  readonly begin: (operation: Operation, name: string, settle: Settle) => Running | null;
  /** Calls `startAll`, which starts all operations of a step. The backend may batch them. */
  readonly together: (startAll: () => void) => void;
  /** Converts an exception of `finish`, of `more` or of the start of a later step into the error of the call. */
  readonly failed: (error: unknown) => CollectiveError;
  /**
   * Called when a later step has started the last operations of the call, or when they will never be started. May be
   * called twice, and while start() runs if operations settle at once. After start(), ask isAllStarted.
   */
  readonly allStarted: () => void;
}

/** Runs the steps of a call: starts each when the operations of the step before have ended. */
export class Progress<T> {
  readonly #name: string;
  readonly #starter: Starter;
  readonly #end: Finish<T>;
  #steps: Steps<T>;
  #isStarted = false;
  /** True if the caller awaits the call, or if the call began with several steps: the end of one starts the next. */
  #needsProgress: boolean;
  #hasEnded = false;
  /** Running operations of the current step, by index; null for those that have ended. */
  #running: (Running | null)[] = [];
  #sources: (number | undefined)[] = [];
  /** Operations of the current step that have not ended. */
  #left = 0;
  #error: CollectiveError | undefined;

  constructor(name: string, steps: Steps<T>, starter: Starter, end: Finish<T>) {
    this.#name = name;
    this.#steps = steps;
    this.#needsProgress = 'more' in steps;
    this.#starter = starter;
    this.#end = end;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }
  get hasEnded(): boolean {
    return this.#hasEnded;
  }
  get isAllStarted(): boolean {
    return this.#hasEnded || (this.#isStarted && 'finish' in this.#steps);
  }

  start(): void {
    this.#isStarted = true;
    const { operations } = this.#steps;
    this.#left = operations.length;
    this.#running = [];
    this.#sources = [];
    if (operations.length === 0) this.#goOn();
    else if (operations.length > 1) this.#starter.together(() => this.#begin(operations));
    else this.#begin(operations);
    if (this.#needsProgress) this.requestProgress();
  }

  #begin(operations: readonly Operation[]): void {
    for (const [index, operation] of operations.entries()) {
      let ended = false;
      const running = this.#starter.begin(operation, this.#name, (error, source) => {
        ended = true;
        this.#running[index] = null;
        this.#sources[index] = source;
        this.#error ??= error;
        if (--this.#left === 0) this.#goOn();
      });
      // If the operation settled before begin() returned, #running may be that of the next step already.
      if (!ended) this.#running[index] = running;
    }
  }

  /** Makes the running operations, and those of later steps, progress without wait(). */
  requestProgress(): void {
    this.#needsProgress = true;
    for (const running of this.#running) running?.requestProgress?.();
  }

  /** Blocks the thread until one more operation of the current step has ended. */
  wait(): void {
    this.#running.find((running) => running !== null)?.wait();
  }

  /**
   * Makes the device's stream wait for the running operations, without blocking the thread, and returns true if that
   * completes the call. Returns false if an operation cannot be fenced or has failed, if steps remain, or if `finish`
   * must run on the CPU first; the caller must then use wait(). Requires start().
   */
  fence(): boolean {
    const canFence = 'finish' in this.#steps && this.#steps.isFenceable === true;
    if (!canFence || this.#running.some((running) => running !== null && running.fence === undefined))
      return false;
    // A fence may settle other operations, too, and so set their entries to null.
    for (const index of this.#running.keys()) this.#running[index]?.fence?.();
    return this.#error === undefined; // after an error the call still waits for its other operations
  }

  #goOn(): void {
    const steps = this.#steps;
    let value: T | undefined;
    try {
      if (this.#error === undefined) {
        if ('more' in steps) {
          this.#steps = steps.more(this.#sources);
          this.start();
          if (this.isAllStarted) this.#starter.allStarted();
          return;
        }
        value = steps.finish(this.#sources);
      }
    } catch (error) {
      this.#error = this.#starter.failed(error);
    }
    this.#hasEnded = true;
    this.#end(this.#error, value);
    if ('more' in steps) this.#starter.allStarted();
  }
}
