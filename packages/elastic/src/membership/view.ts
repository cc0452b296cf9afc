// The documents of membership. A job is a chain of views, each written once in the store. A view says which processes
// train together, and which step is the last final one. Between two views the members write reports, from which the
// next view is computed (decide.ts).

/** One start of a process. A process that is started again is another member. */
export interface Member {
  /** Unique in the job: `slot.incarnation` under the ringwise launcher, otherwise random. */
  readonly id: string;
  /** Stable number from 0, of which a restarted process takes over the one of its predecessor. */
  readonly slot: number;
  /** Id of the host, to prefer sources of state on the same one. */
  readonly host: string;
}

/** What the members of a new view do about the step that was in flight in the view before. */
export type Decision =
  /** The step is final: members that have not applied its averages apply them now. */
  | 'commit'
  /** Nobody has applied its averages: they are dropped, and the step runs again in the new view. */
  | 'redo';

/** Which processes train together from a step on. Immutable. */
export interface View {
  /** 0 for the first view of a job, and one more for each later one. */
  readonly number: number;
  /** In order of slot; the index is the rank in the view's group. */
  readonly members: readonly Member[];
  /** Ids of the members that have no state of the training yet and get it from the others. All in view 0. */
  readonly joined: readonly string[];
  /** Ids of members of the view before that were lost, and of those that left after their last step. */
  readonly lost: readonly string[];
  readonly left: readonly string[];
  /** Number of steps that are final, counting the one that `decision` makes final. */
  readonly finalSteps: number;
  readonly decision: Decision;
  /** Why the job ends with this view, as a sentence; null while it goes on. */
  readonly ended: string | null;
}

/** What a member writes when its view has come to an end. It says what the member knows, without interpretation. */
export interface Report {
  readonly member: string;
  /** Number of the view that has ended for the member. */
  readonly view: number;
  /** Number of steps whose averages the member has applied. */
  readonly finalSteps: number;
  /** Whether all averages of the step after these are complete in the member's memory. */
  readonly isComplete: boolean;
  /** Ids of members that it cannot reach, and whether it knows that they have ended. */
  readonly unreachable: readonly { readonly member: string; readonly isCertain: boolean }[];
  /** Whether the member does not want to be in the next view. */
  readonly isLeaving: boolean;
}
