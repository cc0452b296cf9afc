// How a snapshot call is recognised on a rank that has called something else. A mismatch shows the signatures of both
// calls; the first exchange of a snapshot has one that no program makes by chance, of as many bools as stand here.
import { CollectiveError } from '@ringwise/collectives';
import { notAllCalled } from '../errors.ts';

export type SnapshotVerb = 'saveSnapshot' | 'loadSnapshot';

/** Bools that a rank gives to the first exchange of each call; at least 256. */
export const bools: Readonly<Record<SnapshotVerb, number>> = { saveSnapshot: 277, loadSnapshot: 281 };

/** The error of a collective that met a snapshot call of another rank, with the name of that call; others as they are. */
export function namingSnapshot(error: unknown): unknown {
  if (!CollectiveError.is(error) || error.code !== 'ERR_COLL_MISMATCH') return error;
  for (const verb of Object.keys(bools) as SnapshotVerb[]) {
    const signature = `allGather ${bools[verb]} × bool`;
    if (!error.what.includes(signature)) continue;
    return notAllCalled(verb, error.what.replaceAll(signature, verb), error.peers, error);
  }
  return error;
}
