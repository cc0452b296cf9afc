// Messages through a store. A box is a counter and one key per message. Any number of writers post, and one
// reader reads. The reader waits for a key, so that messages arrive without polling.
//
// A writer killed between reserving a number and writing its message leaves a gap that would block the
// reader. The reader therefore skips a number that stays empty while later ones have been reserved, by
// storing a mark in its key. A writer that was only slow finds the mark and takes another number. compareSet
// decides between the two.

import { type Store, StoreError } from '@ringwise/store';

/** Milliseconds that a number may stay empty before the reader checks for a gap. */
const gapMs = 2_000;
const givenUp = 'given up';

/** Posts messages to boxes one after the other, in call order. */
export class Outbox {
  readonly #store: Store;
  #sent: Promise<void> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Resolves when the message is stored, or the store is lost, which its readers report. Rejects only if the message is
   * larger than the store accepts: its reader would wait forever.
   */
  readonly post = (box: string, message: unknown): Promise<void> => {
    const text = JSON.stringify(message);
    const posted = this.#sent.then(async () => {
      try {
        for (;;) {
          const number = await this.#store.add(`${box}/posted`, 1);
          const stored = await this.#store.compareSet(`${box}/${number}`, '', text);
          if (Buffer.from(stored).toString() !== givenUp) return;
        }
      } catch (error) {
        if (!StoreError.isInstance(error) || error.code === 'ERR_STORE_ARGUMENT') throw error;
      }
    });
    this.#sent = posted.catch(() => {});
    return posted;
  };
}

/**
 * Yields the messages of a box and removes each as it is read. Skips messages that `parse` does not know.
 * Ends by throwing the signal's reason or the store's error.
 */
export async function* inbox<Message>(
  store: Store,
  box: string,
  parse: (text: string) => Message | null,
  signal: AbortSignal,
): AsyncGenerator<Message, never> {
  for (let number = 1; ; number++) {
    const text = await take(store, box, number, signal);
    const message = text === null ? null : parse(text);
    if (message !== null) yield message;
  }
}

/** Waits for a message and removes it. Returns null for a gap. */
async function take(store: Store, box: string, number: number, signal: AbortSignal): Promise<string | null> {
  const key = `${box}/${number}`;
  const now = <T>(answer: Promise<T>) => unlessAborted(answer, signal);
  for (;;) {
    const bytes = await store.get(key, { timeoutMs: gapMs, signal }).catch((error: unknown) => {
      // A wait needs a connection of its own, which a busy store may not accept in time.
      const isOver =
        StoreError.isInstance(error) &&
        ['ERR_STORE_TIMEOUT', 'ERR_STORE_CONNECT', 'ERR_STORE_BUSY'].includes(error.code);
      if (isOver) return null;
      throw error;
    });
    if (bytes !== null) {
      await now(store.delete(key));
      return Buffer.from(bytes).toString();
    }
    if ((await now(store.add(`${box}/posted`, 0))) <= number) continue;
    // The mark is not removed, because the slow writer may look for it much later.
    const stored = await now(store.compareSet(key, '', givenUp));
    if (Buffer.from(stored).toString() === givenUp) return null;
  }
}

/**
 * Rejects if the signal is aborted first. Calls that do not wait take no signal, and against an unreachable store
 * they last until the store's own deadline, which is minutes.
 */
async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
  });
  try {
    return await Promise.race([answer, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
