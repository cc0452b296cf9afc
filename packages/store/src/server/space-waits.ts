// The waits of one client on a key space in this process.

import type { Wait } from '../client/store-client.ts';
import { closed, missingKeys } from '../errors.ts';
import { expired, limited, withResolvers } from './deadline.ts';
import type { KeySpace } from './key-space.ts';
import type { Operation } from './operations.ts';

export class SpaceWaits {
  readonly #space: KeySpace;
  readonly #where: string;
  readonly #ended = new AbortController();
  #count = 0;

  constructor(space: KeySpace, where: string) {
    this.#space = space;
    this.#where = where;
  }

  /** Number of pending waits. */
  get count(): number {
    return this.#count;
  }

  throwIfEnded(): void {
    this.#ended.signal.throwIfAborted();
  }

  /** Rejects pending and later waits with `error`. Only the first call of end() has an effect. */
  end(error: Error = closed(this.#where)): void {
    this.#ended.abort(error);
  }

  /**
   * Waits for the keys, at most `leftMs`: the caller may have used a part of the wait's time. Executes `then` at the
   * moment when the last key arrives, so that no key can be deleted in between.
   */
  async run<T>(wait: Wait, then: Operation<T>, leftMs = wait.timeoutMs): Promise<T> {
    const present = withResolvers<T>();
    const withdraw = this.#space.watch(wait.keys, () => present.resolve(then.run(this.#space)));
    this.#count++;
    try {
      const result = await limited(present.promise, leftMs, [wait.signal, this.#ended.signal]);
      if (result !== expired) return result;
      const missing = wait.names.filter((_, index) => !this.#space.has(wait.keys[index]!));
      throw missingKeys(wait.verb, this.#where, wait.timeoutMs, missing, wait.names.length);
    } finally {
      this.#count--;
      withdraw();
    }
  }
}
