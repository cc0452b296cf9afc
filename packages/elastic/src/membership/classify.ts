// Distinguishes failures of the membership, after which the remaining members continue, from errors of the program,
// which end the job.
import { CollectiveError, type Failure } from '@ringwise/collectives';

/** Prefix of the reason with which a member aborts a group whose view has ended for it. */
const marker = 'the view has ended for this member: ';

/** Returns the reason with which a member aborts the group, so that the other members also change the view. */
export function changeReason(error: unknown): string {
  return `${marker}${error instanceof Error ? error.message : String(error)}`;
}

/** Returns the first CollectiveError in the chain of causes; null if there is none. */
export function rootOf(error: unknown): CollectiveError | null {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (CollectiveError.is(each)) return each;
  }
  return null;
}

/**
 * Returns whether an error is a change of the membership. `failure` is the failure of the group; an error that the
 * group has caused indirectly has it as its cause.
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
