// Tells failures of the membership, after which the others go on, from errors of the program, which end the job.
import type { CollectiveError, Failure } from '@ringwise/collectives';
import { rootOf } from './connect.ts';

/** Begins the reason with which a member aborts a group whose view has ended for it. */
const marker = 'the view has ended for this member: ';

/** Returns the reason with which a member aborts the group, so that the others change the view as well. */
export function changeReason(error: unknown): string {
  return `${marker}${error instanceof Error ? error.message : String(error)}`;
}

/**
 * Returns whether an error says that the membership has changed. `failure` is that of the group; an error that the
 * group has caused indirectly names it as its cause.
 */
export function isMembershipError(error: unknown, failure: CollectiveError | null): boolean {
  const root = rootOf(error);
  if (root === null) return false;
  return isMembershipFailure(root, failure?.rank ?? root.rank);
}

function isMembershipFailure({ code, peers, what }: Failure, rank: number | null): boolean {
  switch (code) {
    case 'ERR_COLL_PEER_LOST':
    case 'ERR_COLL_TIMEOUT':
      return true;
    case 'ERR_COLL_ABORTED':
      return what.includes(marker);
    case 'ERR_COLL_SYSTEM':
      return peers.length > 0 && !peers.includes(rank ?? -1);
    default:
      return false;
  }
}
