import { randomUUID } from 'node:crypto';
import type { Store } from './store.ts';

/** A value that no key has. */
const absent = Buffer.from(randomUUID());

/**
 * Resolves with the value under `key`, or with null if there is none now. Takes one request and does not wait for the
 * key, as check() followed by get() would if another client removed the key between the two. The value belongs to the
 * caller. Rejects as `store.compareSet` does. Not collective.
 */
export async function getIfPresent(store: Store, key: string): Promise<Uint8Array | null> {
  // Changes nothing, because no value equals `absent`; for an absent key the answer is the expected value.
  const value = await store.compareSet(key, absent, absent);
  return absent.equals(value) ? null : value;
}
