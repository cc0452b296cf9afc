// What a call on a group is to its backend: one operation, or steps of several that are started together, each step
// after the one before has ended.

import type { Verb } from '../all-verbs.ts';
import type { Operation, Running, Settle } from '../backend.ts';
import type { CollectiveError } from '../errors.ts';
import type { Finish } from './work.ts';

/** By operation of a step: the sender's rank of a recv, otherwise undefined. */
export type Sources = readonly (number | undefined)[];

export interface LastStep<T> {
  readonly operations: readonly Operation[];
  /** Runs when all have ended well; gives the value of the call. A CollectiveError that it throws fails the call. */
  readonly finish: (sources: Sources) => T;
  /** `finish` leaves the results of collectives as they are and gives no value, so a fence of the operations is one of the call. */
  readonly isFenceable?: boolean;
}
export interface EarlierStep<T> {
  readonly operations: readonly Operation[];
  /** Runs when all have ended well. A CollectiveError that it throws fails the call. */
  readonly more: (sources: Sources) => Steps<T>;
}
export type Steps<T> = LastStep<T> | EarlierStep<T>;

/** The value of a single operation is the sender's rank of a recv, and nothing otherwise. */
export type Call<T> = Operation | Steps<T>;

export function isOperation<T>(call: Call<T>): call is Operation {
  return 'verb' in call;
}

/** The same steps with another value. */
export function mapSteps<A, B>(steps: Steps<A>, map: (value: A) => B): Steps<B> {
  const { operations } = steps;
  if ('finish' in steps) return { operations, finish: (sources) => map(steps.finish(sources)) };
  return { operations, more: (sources) => mapSteps(steps.more(sources), map) };
}

/** Messages are no part of the order of the collectives. */
export function isMessage(verb: Verb): boolean {
  return verb === 'send' || verb === 'recv';
}

/** What a Progress needs of its group. */
export interface Starter {
  readonly begin: (operation: Operation, name: string, settle: Settle) => Running | null;
  /** Calls `begin`, which begins the operations of a step. */
  readonly together: (begin: () => void) => void;
  /** An error that `finish` or `more` has thrown. */
  readonly failed: (error: unknown) => CollectiveError;
  /** Everything has been started, or never will be. Called once, but not from inside start(). */
  readonly allStarted: () => void;
}

/** A call of several operations on its way. */
export class Progress<T> {
  readonly #name: string;
  readonly #starter: Starter;
  readonly #end: Finish<T>;
  #steps: Steps<T>;
  #isStarted = false;
  /** Somebody awaits it; or this rank has to know when a step ends, to start the next. */
  #needsProgress: boolean;
  #hasEnded = false;
  /** Of the current step, by operation; null where it has ended. */
  #running: (Running | null)[] = [];
  #sources: (number | undefined)[] = [];
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
    if (operations.length > 1) this.#starter.together(() => this.#begin(operations));
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
      if (!ended) this.#running[index] = running;
    }
  }

  /** See Running. */
  requestProgress(): void {
    this.#needsProgress = true;
    for (const running of this.#running) running?.requestProgress?.();
  }

  /** Blocks until one more operation of the current step has ended. */
  wait(): void {
    this.#running.find((running) => running !== null)?.wait();
  }

  /**
   * Fences all that is left, if nothing is to come after it, and returns true. False if there is more to wait for: it takes wait() then.
   */
  fence(): boolean {
    const canFence = 'finish' in this.#steps && this.#steps.isFenceable === true;
    if (!canFence || this.#running.some((running) => running !== null && running.fence === undefined))
      return false;
    // A fence may end others than its own.
    for (const index of this.#running.keys()) this.#running[index]?.fence?.();
    return this.#error === undefined; // which the call has only when all have ended
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
