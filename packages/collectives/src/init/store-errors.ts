// Converts the store's errors in calls whose ranks meet through a store.
import { StoreError } from '@ringwise/store';
import { CollectiveError, type Site } from '../errors.ts';
import { storeFailed } from './errors.ts';

/** Returns what `call` resolves with. If the store fails meanwhile, rejects with ERR_COLL_INIT for `verb`. */
export async function withStoreErrors<T>(verb: string, site: Site, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!StoreError.isInstance(error)) throw error;
    throw new CollectiveError(storeFailed(error.message, verb), site, { cause: error });
  }
}
