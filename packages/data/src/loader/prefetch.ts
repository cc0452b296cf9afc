// Runs a pass ahead of its consumer. Loads start and are handed out in order. A failed load throws its error
// when its turn comes. Synchronous loads are never run ahead: on one thread this would only use memory.

import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { Loaded, Pass } from './pass.ts';

/**
 * Yields the batches of a pass. At most `ahead` loads are running or ready beyond the one that the consumer requested
 * last. While other threads load fast enough, further loads are started only when at most half of `ahead` are left,
 * because starting two at once costs hardly more than one. When the consumer leaves early, by break or by an error,
 * waits for the running loads (their results are dropped) and then closes the pass, so that nothing reads the data set
 * afterwards.
 */
export async function* prefetched<B>(
  pass: Pass<B>,
  ahead: number,
): AsyncGenerator<Loaded<B>, void, undefined> {
  const started: MaybePromise<Loaded<B> | undefined>[] = [];
  try {
    for (;;) {
      // True if no started load has ended: the threads are slower than the consumer.
      const isBehind = (pass.takeReady?.() ?? started.length) >= started.length;
      if (isBehind || started.length <= Math.ceil(ahead / 2)) {
        while (started.length === 0 || (started.length <= ahead && isPromise(started[0]))) {
          started.push(start(pass));
        }
      }
      const loaded = await started[0];
      void started.shift();
      if (loaded === undefined) return;
      yield loaded;
    }
  } finally {
    await Promise.allSettled(started.filter(isPromise));
    await pass.close();
  }
}

function start<B>(pass: Pass<B>): MaybePromise<Loaded<B> | undefined> {
  try {
    const loaded = pass.next();
    // Marks the rejection as handled; the consumer gets the error when its turn comes.
    if (isPromise(loaded)) void loaded.catch(() => {});
    return loaded;
  } catch (error) {
    const failed = Promise.reject(error);
    failed.catch(() => {});
    return failed;
  }
}
