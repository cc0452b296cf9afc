// How ranks find each other: each writes its own payload to the store and waits for everybody else's. Whether they
// have met is decided once, in the store, by the first rank that either sees all payloads or gives up. So a rank that
// comes late is told so; it never believes in peers that have gone.
import type { Store } from '@ringwise/store';
import { CollectiveError, type Site } from './errors.ts';
import { arrivedLate, ranksMissing, rankTwice } from './init-errors.ts';

/**
 * Swaps one small payload between all ranks; returns all payloads in rank order. Collective. Once per store prefix:
 * wrap the store in another PrefixStore for a second exchange. ERR_COLL_INIT names the ranks that are missing at the
 * deadline, a rank that arrives twice, or tells this rank that the others have given up.
 */
export async function exchange(
  store: Store,
  rank: number,
  size: number,
  payload: Uint8Array,
  timeoutMs: number,
): Promise<Uint8Array[]> {
  const payloads = await meet(store, rank, size, payload, timeoutMs, null);
  if (payloads === null) throw new CollectiveError(arrivedLate(rank), null);
  return payloads;
}

/** Like exchange(), but null if the others have given up before. Errors name `site`, if there is one. */
export async function meet(
  store: Store,
  rank: number,
  size: number,
  payload: Uint8Array,
  timeoutMs: number,
  site: Site | null,
): Promise<Uint8Array[] | null> {
  const keys = Array.from({ length: size }, (_, other) => `rank/${other}`);
  const stored = await store.compareSet(`rank/${rank}`, '', payload);
  if (Buffer.compare(stored, payload) !== 0) throw new CollectiveError(rankTwice(rank), site);
  let missing: number[] = [];
  try {
    await store.wait(keys, { timeoutMs });
  } catch (cause) {
    missing = await missingRanks(store, keys, cause);
  }
  const proposal = missing.length === 0 ? 'met' : 'given up';
  const outcome = await store.compareSet('outcome', '', proposal);
  if (Buffer.from(outcome).toString() === 'met') return await store.multiGet(keys, { timeoutMs });
  if (missing.length === 0) return null;
  throw new CollectiveError(ranksMissing(missing, size, timeoutMs), site);
}

/** Which ranks have not come, after waiting for them failed. Throws `cause` if the store cannot tell. */
async function missingRanks(store: Store, keys: readonly string[], cause: unknown): Promise<number[]> {
  try {
    const isThere = await Promise.all(keys.map((key) => store.check([key])));
    return keys.flatMap((_, rank) => (isThere[rank] ? [] : [rank]));
  } catch {
    throw cause;
  }
}
