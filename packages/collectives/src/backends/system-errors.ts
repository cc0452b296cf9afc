// Converts what the operating system refuses while a rank makes its end of a group: one more descriptor or thread.
import { StoreError } from '@ringwise/store';
import { CollectiveError, cannotMakeEnd } from '../errors.ts';
import type { BackendContext } from './context.ts';

/**
 * Returns what `make` resolves with. Passes on its CollectiveErrors, the errors of the store and the reason of the
 * context's signal; every other error becomes ERR_COLL_SYSTEM, with that error as its cause.
 */
export async function withSystemErrors<T>(
  { group, rank, size, signal }: BackendContext,
  make: () => Promise<T>,
): Promise<T> {
  try {
    return await make();
  } catch (cause) {
    const isKnown = CollectiveError.is(cause) || StoreError.isInstance(cause);
    if (isKnown || (signal?.aborted === true && cause === signal.reason)) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CollectiveError(cannotMakeEnd(reason), { group, rank, size }, { cause });
  }
}
