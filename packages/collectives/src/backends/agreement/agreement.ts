// The comparisons of a group that are under way.
import type { Backend, Running } from '../../backend.ts';
import { CollectiveError } from '../../errors.ts';
import type { BackendContext } from '../context.ts';
import { type Call, type Common, Comparison, type Decide } from './comparison.ts';

/** So many may wait for the event loop. A program that blocks takes note of them itself. */
const mostUndecided = 64;

export class Agreement {
  readonly #context: BackendContext;
  readonly #host: Backend;
  readonly #common: Common = { isFound: false, spare: [] };
  readonly #undecided = new Set<Comparison>();
  #onDecided: (() => void)[] = [];

  constructor(context: BackendContext, host: Backend) {
    this.#context = context;
    this.#host = host;
  }

  /** Asks all ranks about a call. One rank alone agrees with itself. */
  ask(call: Call, decide: Decide): Running {
    if (this.#context.size === 1) {
      decide();
      return { wait: () => {} };
    }
    const comparison: Comparison = new Comparison(this.#context, this.#host, this.#common, call, (error) => {
      this.#undecided.delete(comparison);
      decide(error);
      if (this.#undecided.size === 0) for (const resolve of this.#onDecided.splice(0)) resolve();
    });
    this.#undecided.add(comparison);
    comparison.start();
    return comparison;
  }

  /** A loop that never returns to the event loop would hear of no comparison, and keep the memory of all. */
  catchUp(): void {
    if (this.#undecided.size < mostUndecided) return;
    this.#decideOldest();
  }

  /** Blocks until nothing is under way. */
  decideAll(): void {
    while (this.#undecided.size > 0) this.#decideOldest();
  }

  #decideOldest(): void {
    const [oldest] = this.#undecided;
    oldest!.wait(); // which settles all that have ended
  }

  /**
   * Why an operation has failed. A rank that was told that ranks disagree may have left since, and that be noticed where it is
   * missed before this thread has looked at what it had said.
   */
  causeOf(error: CollectiveError): CollectiveError {
    // The host group has found who is lost, so nothing of it waits.
    if (error.code === 'ERR_COLL_PEER_LOST') this.decideAll();
    return this.knownCauseOf(error);
  }

  /** The same as far as this thread has looked, for those who are called while it does. */
  knownCauseOf(error: CollectiveError): CollectiveError {
    const { failure } = this.#common;
    if (failure === undefined || error.code !== 'ERR_COLL_PEER_LOST') return error;
    const { verb, seq } = error;
    return new CollectiveError({ ...failure, verb, seq }, this.#context);
  }

  /** Resolves when nothing is under way. */
  async decided(): Promise<void> {
    if (this.#undecided.size > 0) await new Promise<void>((resolve) => this.#onDecided.push(resolve));
  }
}
