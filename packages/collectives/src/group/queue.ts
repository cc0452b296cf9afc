// The order among calls of several operations. Such a call starts the operations of a step when those of the step
// before have ended. Collectives that the program calls in the meantime could be started between two
// steps, at different points on different ranks. They therefore wait in a queue until every operation of the
// earlier call has been started. Messages never wait.
import type { Progress } from './steps.ts';

/** A call of several operations, of any result type. */
export type Waiting = Pick<
  Progress<never>,
  'isStarted' | 'isAllStarted' | 'hasEnded' | 'start' | 'requestProgress' | 'wait' | 'fence'
>;

export class CallQueue {
  /** Calls with collectives that are not all started yet, and the calls that wait behind them. */
  readonly #queue: Waiting[] = [];
  /** Calls that have not ended, also those of messages. */
  readonly #pending = new Set<Waiting>();
  readonly #onIdle: (() => void)[] = [];
  #isStarting = false;

  /** Whether a collective that is called now has to wait. */
  get isBusy(): boolean {
    return this.#queue.length > 0;
  }

  /** Adds a call of messages and starts it. */
  addMessages(call: Waiting): void {
    this.#pending.add(call);
    call.start();
  }

  /** Adds a call with collectives and starts it, at once or in its turn. */
  addCollectives(call: Waiting): void {
    this.#pending.add(call);
    this.#queue.push(call);
    this.startReady();
  }

  /** Starts queued calls in order, up to the first call that cannot start all of its operations yet. */
  startReady(): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    try {
      for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
        if (!head.isStarted) head.start();
        if (!head.isAllStarted) break;
        this.#queue.shift();
      }
    } finally {
      this.#isStarting = false;
    }
  }

  /** Removes a call that has ended. */
  remove(call: Waiting): void {
    this.#pending.delete(call);
    if (this.#pending.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Blocks until no call is queued, so that the next collective can be started. */
  waitUntilFree(): void {
    while (this.#queue.length > 0) this.#queue[0]?.wait();
  }

  /** Blocks until the call has ended. */
  waitFor(call: Waiting): void {
    while (!call.hasEnded) (call.isStarted ? call : this.#queue[0])?.wait();
  }

  /** Fences the operations of the call if that completes it on the device; else blocks until it has ended. */
  fence(call: Waiting): void {
    while (!call.isStarted && !call.hasEnded) this.#queue[0]?.wait();
    if (!call.fence()) this.waitFor(call);
  }

  /** Requests progress of the call and of all queued calls before it, since it depends on them. */
  requestProgress(call: Waiting): void {
    for (const earlier of this.#queue) earlier.requestProgress();
    call.requestProgress();
  }

  /** Requests progress of all calls and resolves when they have ended. */
  async end(): Promise<void> {
    for (const call of this.#pending) call.requestProgress();
    if (this.#pending.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
