// Compares the calls of all ranks while the operations run.
import type { Backend, Running } from '../../backend.ts';
import { CollectiveError } from '../../errors.ts';
import type { BackendContext } from '../context.ts';
import { type Call, type Common, Comparison, type Decide } from './comparison.ts';

/** Maximum number of comparisons that wait for the event loop. Beyond it, catchUp() waits for the oldest. */
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

  /**
   * Asks all ranks whether they have made the same call and passes the outcome to `decide`. With one rank,
   * `decide` is called at once.
   */
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

  /**
   * Bounds the number of running comparisons: a loop that never returns to the event loop would otherwise see
   * no outcome and keep the memory of all comparisons.
   */
  catchUp(): void {
    if (this.#undecided.size < mostUndecided) return;
    this.#decideOldest();
  }

  /** Blocks until no comparison is running. */
  decideAll(): void {
    while (this.#undecided.size > 0) this.#decideOldest();
  }

  #decideOldest(): void {
    const [oldest] = this.#undecided;
    oldest!.wait(); // also settles all others that have ended
  }

  /**
   * Returns the root cause of a failed operation. A rank that saw a mismatch may have left the group, and
   * this rank may notice the lost peer before it has processed the comparison. Waits for the comparisons if a
   * peer was lost.
   */
  causeOf(error: CollectiveError): CollectiveError {
    // The host group has failed as well, so none of its operations blocks.
    if (error.code === 'ERR_COLL_PEER_LOST') this.decideAll();
    return this.knownCauseOf(error);
  }

  /**
   * Returns the root cause as far as the comparisons that have ended show it. Does not block, so a comparison's settle
   * may call it.
   */
  knownCauseOf(error: CollectiveError): CollectiveError {
    const { failure } = this.#common;
    if (failure === undefined || error.code !== 'ERR_COLL_PEER_LOST') return error;
    const { verb, seq } = error;
    return new CollectiveError({ ...failure, verb, seq }, this.#context);
  }

  /**
   * Makes a mismatch the root cause of the host group. Call it before this rank leaves the group. Ranks whose
   * comparison is still running then report the mismatch, and not that this rank has left.
   */
  tellMismatch(): void {
    const { failure } = this.#common;
    if (failure !== undefined) this.#host.abort(new CollectiveError(failure, this.#context));
  }

  /** Resolves when no comparison is running. */
  async decided(): Promise<void> {
    if (this.#undecided.size > 0) await new Promise<void>((resolve) => this.#onDecided.push(resolve));
  }
}
