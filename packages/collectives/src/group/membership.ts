// How a group makes smaller ones: what it is given to make backends for them and to agree on who is left.
import type { Backend } from '../backend.ts';

/**
 * The ranks that go on, in order; this one is among them. Collective over the survivors; `attempt` is the same on all.
 * Waits up to `waitMs` for `candidates`, among them this rank, and leaves out who has not come by then.
 * ERR_COLL_INIT where the others have gone on without this rank.
 */
export type Survivors = (candidates: readonly number[], attempt: number, waitMs: number) => Promise<number[]>;

export interface SubgroupRequest {
  /** Ranks of the parent, in the order of their ranks in the subgroup. This rank is one of them. */
  readonly members: readonly number[];
  /** No other subgroup of the parent has it; the same on all members. */
  readonly key: string;
  readonly name: string;
  readonly timeoutMs: number;
}

/** Makes this rank's backend for a subgroup, and what makes those of its subgroups. Collective over the members. */
export type Subgroups = (request: SubgroupRequest) => Promise<Connected>;

export interface Connected {
  readonly backend: Backend;
  readonly subgroups: Subgroups;
  readonly survivors?: Survivors;
}
