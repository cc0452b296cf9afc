// The functions with which a group makes smaller groups: one makes their backends, one agrees on the
// survivors.
import type { Backend } from '../../backend.ts';

/**
 * Resolves with the ranks that continue after a failure, in order; this rank is one of them. Collective over
 * the survivors; `attempt` must be the same on all. Waits up to `waitMs` milliseconds for the `candidates`,
 * which include this rank, and leaves out those that have not come by then. Rejects with ERR_COLL_INIT if the
 * others have continued without this rank.
 */
export type Survivors = (candidates: readonly number[], attempt: number, waitMs: number) => Promise<number[]>;

/** A request of a group to its backend for a group of some of its ranks. */
export interface SubgroupRequest {
  /** Ranks of the parent, in the order of their ranks in the subgroup. Contains this rank. */
  readonly members: readonly number[];
  /** Unique among the parent's subgroups; the same on all members. */
  readonly key: string;
  /** Name of the subgroup, for error messages. */
  readonly name: string;
  /** Milliseconds that making the subgroup may take, and its default deadline. */
  readonly timeoutMs: number;
  /** Ends the making, which then rejects, when it is aborted: the parent has failed, or has lost a member. */
  readonly signal?: AbortSignal;
}

/**
 * Resolves with this rank's backend for a subgroup, and with the functions that make the subgroup's own
 * subgroups. Collective over the members.
 */
export type Subgroups = (request: SubgroupRequest) => Promise<Connected>;

/** A backend that can communicate, and what its group needs to make groups of some of its ranks. */
export interface Connected {
  /** Moves the data of the group. */
  readonly backend: Backend;
  /** Makes groups of some ranks. */
  readonly subgroups: Subgroups;
  /** Makes the group of the ranks that are left after a loss. Absent if the backend cannot. */
  readonly survivors?: Survivors;
}
