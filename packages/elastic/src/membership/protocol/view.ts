// The documents of membership. A job is a chain of views, each written once in the store. A view says which processes
// train together, and which step is the last final one. Between two views the members write reports, from which the
// next view is computed (decide.ts).

/** One start of a process. A process that is started again is another member. */
export interface Member {
  /** Unique in the job: `slot.incarnation` under the ringwise launcher, otherwise random. */
  readonly id: string;
  /** Stable number from 0. A restarted process has the slot of its predecessor. */
  readonly slot: number;
  /** Id of the host, to prefer sources of state on the same one. */
  readonly host: string;
  /**
   * Identity of the process on its host, with which members there check whether it has ended; null if it cannot be
   * checked.
   */
  readonly process: string | null;
  /** Address, as `host:port`, of a store on its host to which the job can move; null if there is none. */
  readonly standby: string | null;
}

/** The request of a process to become a member, which it writes into the store. */
export interface Wish {
  readonly id: string;
  /** The slot that its launcher has assigned; null to take the lowest free slot. */
  readonly slot: number | null;
  readonly host: string;
  readonly process: string | null;
  readonly standby: string | null;
}

/** The members of an earlier view, of which later views need enough (see quorum.ts). */
export interface Quorum {
  /** Ids. */
  readonly members: readonly string[];
  /** Epoch of the view. */
  readonly epoch: number;
  /** Whether the store can move from the view to another host. */
  readonly canMove: boolean;
}

/** The decision of a new view about the step that was in flight in the previous view. */
export type Decision =
  /** The step is final: members that have not applied its averages apply them now. */
  | 'commit'
  /** No member has applied averages of the step: they are dropped, and the step runs again in the new view. */
  | 'redo';

/** The processes that train together from a certain step on. Immutable. */
export interface View {
  /** 0 for the first view of a job, and one more for each later one. */
  readonly number: number;
  /** Number of times that the store of the job had moved to another host when the view was written in it. */
  readonly epoch: number;
  /** In order of slot; the index is the rank in the view's group. */
  readonly members: readonly Member[];
  /**
   * Ids of the members that have no state of the training yet and receive it from the others. All members in view 0.
   */
  readonly joined: readonly string[];
  /** Ids of members of the view before that were lost. */
  readonly lost: readonly string[];
  /** Ids of members that left after their last step. */
  readonly left: readonly string[];
  /** Number of final steps, including the one that `decision` makes final. */
  readonly finalSteps: number;
  /** Decision about the step that was in flight in the previous view. */
  readonly decision: Decision;
  /**
   * Earlier views that count for the next quorum (quorum.ts): back to the last one known to be connected, inclusive.
   */
  readonly unsettled: readonly Quorum[];
  /** Number of wishes to join that this view and those before it have read. */
  readonly wishes: number;
  /** Numbers up to `wishes` whose wish had no text yet; later views read them again. */
  readonly unread: readonly number[];
  /**
   * The failure that ended the previous view, with the number of times that it has ended a view at this step; null if
   * none did.
   */
  readonly failure: RepeatedFailure | null;
  /** Why the job ends with this view, as a sentence; null while it goes on. */
  readonly ended: string | null;
  /** Whether the job ends because its training is over, so that processes without its state are not needed. */
  readonly isOver: boolean;
}

/** A failure that ended one or more views in a row at the same step. */
export interface RepeatedFailure {
  /** Slots of the members that were lost or, if none was, the sentence of the failure. */
  readonly what: string;
  /** Number of views in a row that it has ended. */
  readonly times: number;
}

/** A member's report when its view has ended: only facts that the member knows, without interpretation. */
export interface Report {
  /** Id of the member. */
  readonly member: string;
  /** Number of the view that has ended for the member. */
  readonly view: number;
  /** Number of steps whose averages the member has applied. */
  readonly finalSteps: number;
  /** Whether all averages of the step after these are complete in the member's memory. */
  readonly isComplete: boolean;
  /** Whether the member has the state of the training after `finalSteps` steps. */
  readonly hasState: boolean;
  /** Whether the member was connected with all members of the view. */
  readonly wasConnected: boolean;
  /** Ids of members that it cannot reach. `isCertain` tells whether their process has certainly ended. */
  readonly unreachable: readonly { readonly member: string; readonly isCertain: boolean }[];
  /** Whether the member does not want to be in the next view. */
  readonly isLeaving: boolean;
  /**
   * Whether the training of the member is over. Such a member leaves after its last final step without having asked to
   * leave. The others, whose vote may have failed, can then finish this step without further members.
   */
  readonly isDone: boolean;
  /** The failure that ended the view for the member, as a sentence; null after a vote that changes the view. */
  readonly failure: string | null;
}
