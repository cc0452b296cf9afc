// Ends the making of a subgroup when it cannot succeed any more. Its members meet through the store, where a rank that
// has been lost cannot be told from one that is late, so the connections of the parent are watched meanwhile.
import type { CollectiveError, Failure } from '../../errors.ts';

/** Interval in milliseconds at which the parent is watched. */
const watchMs = 100;

/**
 * Resolves or rejects as `make` does. `failureOf` returns the failure of the parent or the loss of its ranks, or null.
 * When the parent has failed, or has lost one of the `members`, aborts the signal of `make` with the error that `fail`
 * returns, and then rejects with that error.
 */
export async function withParent<T>(
  failureOf: () => Failure | null,
  members: readonly number[],
  fail: (failure: Failure) => CollectiveError,
  make: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const look = () => {
    const failure = failureOf();
    if (failure === null || stop.signal.aborted) return;
    const isOfOthers =
      failure.code === 'ERR_COLL_PEER_LOST' && !failure.peers.some((peer) => members.includes(peer));
    if (!isOfOthers) stop.abort(fail(failure));
  };
  const timer = setInterval(look, watchMs);
  try {
    return await make(stop.signal);
  } catch (error) {
    look(); // another rank may have noticed the loss before
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearInterval(timer);
  }
}
