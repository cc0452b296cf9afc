// Follows the store of the ranks of an elastic job, on a launcher that does not serve it: reads its views, and finds
// the store to which the ranks have moved when its host is lost.

import { type Store, StoreError } from '@ringwise/store';
import type { Rendezvous } from '../../agent/env.ts';
import { within } from '../../within.ts';
import { answerMs, findMovedStore, type MovedStore } from './moved-store.ts';
import type { ViewFacts } from './view-facts.ts';
import { type ViewWatch, watchViews } from './view-watch.ts';

/**
 * Milliseconds to search for the store after a process has ended. The ranks move when they notice the loss, which takes
 * some seconds if the network is cut.
 */
const searchMs = 60_000;

export class RankStores {
  readonly #job: Rendezvous;
  readonly #onView: (view: ViewFacts) => void;
  readonly #first: Store;
  #moved: MovedStore | null = null;
  /** Addresses of the stores that were lost. */
  readonly #lost = new Set<string>();
  #view: ViewFacts | null = null;
  #watch: ViewWatch;
  #following: Promise<boolean> | null = null;

  /** `ranks` has the keys of the job in the store that its launchers share; `onView` gets each new view. */
  constructor(ranks: Store, job: Rendezvous, onView: (view: ViewFacts) => void) {
    this.#first = ranks;
    this.#job = job;
    this.#onView = onView;
    this.#watch = this.#follow(ranks);
  }

  /** The keys of the job, in the latest of its stores that this launcher knows. */
  get ranks(): Store {
    return this.#moved?.ranks ?? this.#first;
  }

  /** The latest view; null before the first one. */
  get view(): ViewFacts | null {
    return this.#view;
  }

  /** The store to which the ranks have moved, for messages between launchers; null before they have. */
  get movedStore(): Store | null {
    return this.#moved?.store ?? null;
  }

  /** Address at which a process finds the store; empty before it has moved. */
  get movedTo(): Partial<Rendezvous> {
    return this.#moved === null ? {} : { masterAddr: this.#moved.host, masterPort: this.#moved.port };
  }

  /** Notes that the store that the launchers share is lost. */
  loseFirst(): void {
    const { masterAddr, masterPort } = this.#job;
    this.#lost.add(`${masterAddr}:${masterPort}`);
  }

  /** Address as `host:port` of the present store of the ranks. */
  get #address(): string {
    const { masterAddr, masterPort } = { ...this.#job, ...this.movedTo };
    return `${masterAddr}:${masterPort}`;
  }

  /**
   * Connects to the store to which the ranks have moved, if the present one is lost. Resolves with false if none is
   * found, or the job has ended there. Rejects with the reason of `signal`. Calls at the same time share one search.
   */
  follow(signal: AbortSignal): Promise<boolean> {
    this.#following ??= this.#find(signal).finally(() => {
      this.#following = null;
    });
    return this.#following;
  }

  async #find(signal: AbortSignal): Promise<boolean> {
    if (!this.#lost.has(this.#address) && (await this.#answers())) return this.#view?.ended === null;
    if (this.#view?.canMove !== true || this.#view.ended !== null) return false;
    const addresses = this.#view.standbys.filter((address) => !this.#lost.has(address));
    const { runId, secret } = this.#job;
    const found = await findMovedStore({ addresses, runId, secret }, searchMs, signal);
    if (found === null) return false;
    await this.#leave();
    this.#moved = found;
    this.#watch = this.#follow(found.ranks);
    await this.#watch.refresh();
    return this.#view.ended === null;
  }

  /** Returns whether the present store still answers. If not, it counts as lost. */
  async #answers(): Promise<boolean> {
    const refreshed = this.#watch.refresh().then(
      () => true,
      (error: unknown) => {
        if (!StoreError.isInstance(error)) throw error;
        return false;
      },
    );
    if ((await within(answerMs, refreshed)) === true) return true;
    this.#lost.add(this.#address);
    return false;
  }

  #follow(ranks: Store): ViewWatch {
    return watchViews(ranks, (view) => {
      const seen = this.#view;
      if (seen !== null && view.epoch <= seen.epoch && view.number <= seen.number) return;
      this.#view = view;
      this.#onView(view);
    });
  }

  async #leave(): Promise<void> {
    await this.#watch.close();
    await this.#moved?.close();
  }

  /** Ends the watch, and the connection with a store to which the ranks have moved. */
  close(): Promise<void> {
    return this.#leave();
  }
}
