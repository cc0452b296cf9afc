// The contract between the membership of a job and its training. The job, and custom training loops, use only this part
// of the membership.
import type { Group } from '@ringwise/collectives';
import type { Decision, Member, View } from './protocol/view.ts';

/** A member's ballot in the vote that ends a step. */
export interface Ballot {
  /** Whether this member stops after the step because its training is over. To leave before that, use leave(). */
  readonly isLeaving?: boolean;
  /** Numbers that must be equal on all members, such as the step and the position in the data. */
  readonly agreed: readonly number[];
  /** Number of steps that are final before this one. Default: those that this member has voted on. */
  readonly finalSteps?: number;
}

/** The result of a vote, equal on all members. */
export interface Vote {
  /** Whether the members change the view after this step, because a member leaves or another one joins. */
  readonly changesView: boolean;
  /** Whether this member leaves after this step. All members know of it. It then calls close(), not change(). */
  readonly isLeaving: boolean;
}

/** A new view, the group of its members, and the decision about the step that was in flight. */
export interface Change {
  /** The new view. */
  readonly view: View;
  /** The group of its members. The job closes it. */
  readonly group: Group;
  /** Whether the step that was in flight becomes final or is repeated. */
  readonly decision: Decision;
  /** Ranks in `group` that have no state of the training yet; the others have it. */
  readonly joined: readonly number[];
}

/** A member's knowledge about its steps when a view ends: the part of a Report that the training fills in. */
export interface Progress {
  /** Number of steps whose averages this member has applied. */
  readonly finalSteps: number;
  /** Whether all averages of the step after these are complete in this member's memory. */
  readonly isComplete: boolean;
  /**
   * Whether this member has the state of the training after `finalSteps` steps. False on a member in `joined` until it
   * has received all of it.
   */
  readonly hasState: boolean;
}

/** The membership of this process in a job: its views, the votes of its steps, and the changes of the view. */
export interface Membership {
  /** This process. */
  readonly self: Member;
  /** The present view; change() replaces it. */
  readonly view: View;
  /** The group of the present view. Groups of earlier views refuse all calls. */
  readonly group: Group;
  /** The change with which this member has joined. */
  readonly first: Change;
  /**
   * Ends a step. Call it when all averages are complete, before they change anything. Collective; blocks this thread if
   * the group can block. Throws the group's error if the vote fails: then call change().
   */
  readonly vote: (ballot: Ballot) => Promise<Vote>;
  /** Runs vote() and blocks this thread until it has ended. Throws its error. */
  readonly voteSync: (ballot: Ballot) => Vote;
  /** Returns whether `error` is a change of the membership rather than an error of the program. */
  readonly isChange: (error: unknown) => boolean;
  /**
   * Ends the view: reports `progress`, waits for the next view, and connects its members. Call it with the error after
   * an error of the group, or without one after a vote that changes the view. Collective among the remaining members.
   * Rejects with ERR_ELASTIC_LEFT_OUT if this member is not in the next view.
   */
  readonly change: (progress: Progress, error?: unknown) => Promise<Change>;
  /**
   * Makes this member leave after the next vote. If all members leave by this call while a process wishes to join, they
   * admit it first, and leave after the first vote of that view. Does not block.
   */
  readonly leave: () => void;
  /**
   * Ends the membership of this process, and closes its group. Not collective: the other members continue. Call it
   * after a vote with `isLeaving`, and when the training is over. Idempotent.
   */
  readonly close: () => Promise<void>;
}
