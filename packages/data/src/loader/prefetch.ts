// Runs a pass ahead of its consumer. Loads start in order and are handed out in order; a failed one surfaces in its
// turn, as it was thrown. Synchronous loads are never run ahead: on one thread that would only hold memory.

import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { Loaded, Pass } from './pass.ts';

/**
 * At most `ahead` loads are running or ready beyond the one that the consumer asked for last. Where other threads load, and keep
 * up, more are asked for only when half of those are left: asking for two at once costs hardly more than for one.
 * Leaving early, by break or by an error, first waits for the loads under way (their results are dropped) and then
 * closes the pass, so that afterwards nothing reads the data set any more.
 */
export async function* prefetched<B>(
  pass: Pass<B>,
  ahead: number,
): AsyncGenerator<Loaded<B>, void, undefined> {
  const started: MaybePromise<Loaded<B> | undefined>[] = [];
  try {
    for (;;) {
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
    // Not lost, only not "unhandled": whoever takes it in its turn gets the error.
    if (isPromise(loaded)) void loaded.catch(() => {});
    return loaded;
  } catch (error) {
    const failed = Promise.reject(error);
    failed.catch(() => {});
    return failed;
  }
}
