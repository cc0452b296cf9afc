// Recognizes a snapshot call on a rank that made another call. A mismatch error shows the signatures of both
// calls. The first exchange of a snapshot call has a signature that no program has by chance: an unusual
// number of bools.
import { CollectiveError } from '@ringwise/collectives';
import { notAllCalled } from '../errors.ts';

export type SnapshotVerb = 'saveSnapshot' | 'loadSnapshot';

/** Number of bools that a rank contributes to the first exchange of each call; at least 256. */
export const bools: Readonly<Record<SnapshotVerb, number>> = { saveSnapshot: 277, loadSnapshot: 281 };

/**
 * Returns the error of a collective. If another rank called saveSnapshot() or loadSnapshot() instead, adds the name of
 * that call; otherwise returns the error unchanged.
 */
export function namingSnapshot(error: unknown): unknown {
  if (!CollectiveError.is(error) || error.code !== 'ERR_COLL_MISMATCH') return error;
  for (const verb of Object.keys(bools) as SnapshotVerb[]) {
    const signature = `allGather ${bools[verb]} × bool`;
    if (!error.what.includes(signature)) continue;
    return notAllCalled(verb, error.what.replaceAll(signature, verb), error.peers, error);
  }
  return error;
}
