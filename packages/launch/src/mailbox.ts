// Messages through a store: a box is a counter and one key per message. Any number may post, one reads. What the
// reader waits for is a key, so that news arrive at once and nobody polls.

import type { Store } from '@ringwise/store';

/** The deadline of the reader: that of a job, which has none. */
const foreverMs = 2 ** 31 - 1;

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
        const number = await this.#store.add(`${box}/posted`, 1);
        await this.#store.set(`${box}/${number}`, JSON.stringify(message));
      } catch {
        // See above.
      }
    });
    return this.#sent;
  };
}

/** The messages of a box, each removed as it is read. Ends by rejecting: with the signal's reason or the store's error. */
export async function* inbox<Message>(
  store: Store,
  box: string,
  signal: AbortSignal,
): AsyncGenerator<Message, never> {
  for (let number = 1; ; number++) {
    const key = `${box}/${number}`;
    const bytes = await store.get(key, { timeoutMs: foreverMs, signal });
    await store.delete(key);
    yield JSON.parse(Buffer.from(bytes).toString()) as Message;
  }
}
