// Messages through a store: a box is a counter and one key per message. Any number may post, one reads. What the
// reader waits for is a key, so that news arrive at once.
//
// Who is killed between counting and storing leaves a gap, before which the reader would wait for ever. So it gives up
// a number that stays empty while later ones are given out, by a mark in its place; a poster that was only slow finds
// the mark and takes another number. compareSet decides between the two.

import { type Store, StoreError } from '@ringwise/store';

/** How long a number may stay empty before the reader asks whether there is a gap. */
const gapMs = 2_000;
const givenUp = 'given up';

/** Posts to boxes, one message after the other, in the order of the calls. */
export class Outbox {
  readonly #store: Store;
  #sent: Promise<void> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Never rejects: a store that is gone is noticed by whoever reads. Resolves when the message is stored. */
  readonly post = (box: string, message: unknown): Promise<void> => {
    this.#sent = this.#sent.then(async () => {
      try {
        const text = JSON.stringify(message);
        for (;;) {
          const number = await this.#store.add(`${box}/posted`, 1);
          const stored = await this.#store.compareSet(`${box}/${number}`, '', text);
          if (Buffer.from(stored).toString() !== givenUp) return;
        }
      } catch {
        // See above.
      }
    });
    return this.#sent;
  };
}

/**
 * The messages of a box, each removed as it is read; what `parse` does not know is left out. Ends by rejecting: with
 * the signal's reason or the store's error.
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

/** Null for a gap. */
async function take(store: Store, box: string, number: number, signal: AbortSignal): Promise<string | null> {
  const key = `${box}/${number}`;
  const now = <T>(answer: Promise<T>) => unlessAborted(answer, signal);
  for (;;) {
    const bytes = await store.get(key, { timeoutMs: gapMs, signal }).catch((error: unknown) => {
      // A wait takes a connection of its own, which a busy store may not accept in time.
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
    // The mark stays: the poster may look for it much later.
    const stored = await now(store.compareSet(key, '', givenUp));
    if (Buffer.from(stored).toString() === givenUp) return null;
  }
}

/** What does not wait has no deadline, and a store that is cut off never answers. */
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
