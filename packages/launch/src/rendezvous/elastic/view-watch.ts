// Follows the views of an elastic job in the store of its ranks.

import { getIfPresent, type Store, StoreError } from '@ringwise/store';
import { headKey, viewKey } from './elastic-keys.ts';
import { parseView, type ViewFacts } from './view-facts.ts';

/** Longest wait for a key in milliseconds. After that, the wait for the next view starts again from the latest one. */
const waitMs = 60_000;

export interface ViewWatch {
  /** Reads the views that have been written since. Resolves when `onView` has been called for each. */
  readonly refresh: () => Promise<void>;
  /** Ends the watch. Does not close the store. */
  readonly close: () => Promise<void>;
}

/**
 * Calls `onView` for each new view, in order. Skips views that were removed before they were read. Ends when the store
 * is lost, which other users of the store report.
 */
export function watchViews(store: Store, onView: (view: ViewFacts) => void): ViewWatch {
  const ending = new AbortController();
  let next = 0;
  // One reader at a time, so that each view is passed on once.
  let reading: Promise<void> = Promise.resolve();

  async function readAll(): Promise<void> {
    const head = Number((await textAt(store, headKey)) ?? 0);
    let text = await textAt(store, viewKey(next));
    // Old views are removed.
    if (text === null && head > next) {
      next = head;
      text = await textAt(store, viewKey(next));
    }
    for (; text !== null; text = await textAt(store, viewKey(next))) {
      const view = parseView(text);
      next++;
      if (view !== null && !ending.signal.aborted) onView(view);
    }
  }

  function refresh(): Promise<void> {
    reading = reading.then(readAll, readAll); // also after a call that failed
    return reading;
  }

  async function follow(): Promise<void> {
    while (!ending.signal.aborted) {
      await refresh();
      await appears(store, viewKey(next), ending.signal);
    }
  }

  // Rejects only when the watch is closed or the store is lost.
  const following = follow().catch(() => {});
  return {
    refresh,
    close: async () => {
      ending.abort(new Error('the watch of views was closed'));
      await following;
    },
  };
}

/**
 * Waits for a key, for a minute at most, or until a busy store refuses the connection that the wait needs. Resolves
 * with true if the key exists. Rejects with the reason of `signal`.
 */
export async function appears(store: Store, key: string, signal: AbortSignal): Promise<boolean> {
  try {
    await store.wait([key], { timeoutMs: waitMs, signal });
    return true;
  } catch (error) {
    const isOver =
      StoreError.isInstance(error) && ['ERR_STORE_TIMEOUT', 'ERR_STORE_BUSY'].includes(error.code);
    if (!isOver) throw error;
    return false;
  }
}

/** Reads a key. Does not wait for it: the members remove old views at any time, also between two requests. */
export async function textAt(store: Store, key: string): Promise<string | null> {
  const value = await getIfPresent(store, key);
  return value === null ? null : Buffer.from(value).toString();
}
