// Who goes on after a failure. The group itself can no longer carry anything, so those that are left agree in the
// store: each says that it is here, and the first one that sees all it waits for, or has waited long enough, writes down
// who the new group is. Everybody takes that list, also who comes later.

import type { Store } from '@ringwise/store';
import { CollectiveError, nobodyToLeave, type Site } from '../errors.ts';
import { leftBehind } from '../init/errors.ts';
import { shown } from '../options/errors.ts';
import type { Calls } from './calls.ts';
import type { Survivors } from './membership.ts';

/** All ranks but those to leave out, by default those that the failure names: it is the same one on all ranks. */
export function candidatesOf(calls: Calls, without = calls.failure?.peers): number[] {
  if (without === undefined) throw calls.error(nobodyToLeave('none'));
  const isRank = (rank: number) => Number.isInteger(rank) && rank >= 0 && rank < calls.size;
  if (!Array.isArray(without) || !without.every(isRank)) throw calls.error(nobodyToLeave(shown(without)));
  const left = Array.from({ length: calls.size }, (_, rank) => rank).filter(
    (rank) => !without.includes(rank),
  );
  if (!left.includes(calls.rank)) throw calls.error(leftBehind(left));
  return left;
}

/** `store` belongs to the group of `site`, whose rank this is. */
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

/** Which of the keys are there, as soon as all are, or after `waitMs`. */
async function arrived(store: Store, keys: readonly string[], waitMs: number): Promise<boolean[]> {
  try {
    await store.wait(keys, { timeoutMs: waitMs });
    return keys.map(() => true);
  } catch {
    // A store that has gone says so here once more.
    return Promise.all(keys.map((key) => store.check([key])));
  }
}
