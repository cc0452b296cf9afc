// A store inside one process: the reference for the other stores, and sufficient for tests and single-process
// groups.

import { checkNames } from './check-options.ts';
import { StoreClient, type Wait } from './client/store-client.ts';
import { KeySpace } from './server/key-space.ts';
import type { Operation } from './server/operations.ts';
import { SpaceWaits } from './server/space-waits.ts';

/** A store in the memory of this thread, for tests and for ranks that share one thread. */
export class MemoryStore extends StoreClient {
  #space = new KeySpace();
  #waits = new SpaceWaits(this.#space, 'memory');

  constructor(options: { readonly timeoutMs?: number } = {}) {
    checkNames('MemoryStore', options, ['timeoutMs']);
    super(options.timeoutMs);
  }

  /** Returns another client of the same keys, with its own close(). */
  clone(): MemoryStore {
    const other = new MemoryStore({ timeoutMs: this.timeoutMs });
    other.#space = this.#space;
    other.#waits = new SpaceWaits(this.#space, 'memory');
    return other;
  }

  protected async send<T>(_verb: string, operation: Operation<T>): Promise<T> {
    this.#waits.throwIfEnded();
    return operation.run(this.#space);
  }

  protected async whenPresent<T>(wait: Wait, then: Operation<T>): Promise<T> {
    return await this.#waits.run(wait, then);
  }

  async close(): Promise<void> {
    this.#waits.end();
  }
}
