// The operations of one rank that have not ended.
import type { Operation, Settle } from '../../backend.ts';
import { CollectiveError, type Failure, type Site } from '../../errors.ts';
import { type Later, later } from './later.ts';

export interface Entry<O extends Operation = Operation> {
  readonly operation: O;
  readonly settle: Settle;
  readonly deadline: Later;
}

export class Pending {
  readonly #site: Site;
  readonly #onExpired: (operation: Operation) => void;
  readonly #entries = new Set<Entry>();
  #onIdle: (() => void)[] = [];

  /** `onExpired` is called at the deadline of each operation that has not ended. */
  constructor(site: Site, onExpired: (operation: Operation) => void) {
    this.#site = site;
    this.#onExpired = onExpired;
  }

  /** Adds an operation. Its deadline keeps the process alive until it has ended. */
  add<O extends Operation>(operation: O, settle: Settle): Entry<O> {
    const deadline = later(operation.timeoutMs, () => this.#onExpired(operation));
    const entry: Entry<O> = { operation, settle, deadline };
    this.#entries.add(entry);
    return entry;
  }

  has(operation: Operation): boolean {
    return [...this.#entries].some((entry) => entry.operation === operation);
  }

  /** Settles an operation, never before this returns. */
  end(entry: Entry, error?: CollectiveError, source?: number): void {
    entry.deadline.cancel();
    queueMicrotask(() => {
      if (!this.#entries.delete(entry)) return;
      entry.settle(error, source);
      if (this.#entries.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
  }

  /** Settles all operations with a failure of the group. `own` is the error of a rank that caused it by abort(). */
  endAll(cause: Failure, own: CollectiveError | null): void {
    for (const entry of this.#entries) {
      const { verb, seq } = entry.operation;
      this.end(entry, own ?? new CollectiveError({ ...cause, verb, seq }, this.#site));
    }
  }

  /** Resolves when no operation is left. */
  async idle(): Promise<void> {
    if (this.#entries.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
