// Agrees on the ranks that continue after a failure. The group itself can no longer communicate, so the
// remaining ranks use the store: each announces itself, and the first rank that has seen all candidates, or
// has waited long enough, stores the list of survivors. All ranks use that list, including those that come
// later.

import type { Store } from '@ringwise/store';
import { CollectiveError, lostRanksUnknown, type Site } from '../../errors.ts';
import { leftBehind, noneStays } from '../../init/errors.ts';
import { shown } from '../../options/errors.ts';
import type { GroupState } from '../state.ts';
import type { Survivors } from './membership.ts';

/**
 * Returns all ranks except `without`, by default the peers that the failure names, which are the same on all
 * ranks. Throws if this rank is left out.
 */
export function candidatesOf(state: GroupState, without = state.failure?.peers): number[] {
  if (without === undefined) throw state.error(lostRanksUnknown('none'));
  const isRank = (rank: number) => Number.isInteger(rank) && rank >= 0 && rank < state.size;
  if (!Array.isArray(without) || !without.every(isRank)) throw state.error(lostRanksUnknown(shown(without)));
  const left = Array.from({ length: state.size }, (_, rank) => rank).filter(
    (rank) => !without.includes(rank),
  );
  if (left.length === 0) throw state.error(noneStays());
  if (!left.includes(state.rank)) throw state.error(leftBehind(left));
  return left;
}

/** Returns the Survivors function for the rank of `site`, whose group owns `store`. */
export function survivorsIn(store: Store, site: Site): Survivors {
  return async (candidates, attempt, waitMs) => {
    const keyOf = (what: string | number) => `shrink/${attempt}/${what}`;
    await store.set(keyOf(site.rank), '');
    const present = await arrived(store, candidates.map(keyOf), waitMs);
    const mine = JSON.stringify(candidates.filter((_, index) => present[index]));
    const decided = await store.compareSet(keyOf('survivors'), '', mine);
    const survivors = JSON.parse(Buffer.from(decided).toString()) as number[];
    if (!survivors.includes(site.rank)) throw new CollectiveError(leftBehind(survivors), site);
    return survivors;
  };
}

/** Waits until all keys exist, at most `waitMs` milliseconds. Returns for each key whether it exists. */
async function arrived(store: Store, keys: readonly string[], waitMs: number): Promise<boolean[]> {
  try {
    await store.wait(keys, { timeoutMs: waitMs });
    return keys.map(() => true);
  } catch {
    // If the store itself is gone, these checks throw.
    return Promise.all(keys.map((key) => store.check([key])));
  }
}
