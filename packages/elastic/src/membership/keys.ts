// The names of the keys through which the members of a job agree. Processes that are not members, such as launchers,
// write only `ended/…`. They repeat these names, because they import nothing from here.

/**
 * Returns the prefix of all keys of an elastic job in the store of its run. It does not depend on the number of
 * restarts: a process that was started again belongs to the same job.
 */
export const jobPrefix = (runId: string) => `ringwise/${runId}/elastic`;

/**
 * Shows that the process of a member has certainly ended. Its launcher writes the key, as
 * `ringwise/<RINGWISE_RUN_ID>/elastic/ended/<RINGWISE_SLOT>.<RINGWISE_INCARNATION>`; the value is the exit code, or the
 * name of the signal, as text.
 */
export const endedKey = (memberId: string) => `ended/${memberId}`;

/** View `n` as JSON, written once by compareSet() from an absent key. */
export const viewKey = (number: number) => `view/${number}`;

/** Number of a view that exists: the latest, or slightly older. Decimal text. */
export const headKey = 'head';

/**
 * Epoch of the view that the first members to move to this store copied into it, as decimal text. A view of a later
 * epoch in the store shows that enough members have moved. Absent in the first store of a job.
 */
export const openedKey = 'opened';

/**
 * The reports of the members of view `n`, appended as one line of JSON each. A later line of a member replaces its
 * earlier one.
 */
export const reportsKey = (number: number) => `reports/${number}`;

/** Description of the members' training as JSON, written once. A process with another description does not join. */
export const trainingKey = 'training';

/** Number of wishes to join so far, as a counter. */
export const wishCountKey = 'wishes';

/** Wish number `k`, from 1, as JSON. */
export const wishKey = (k: number) => `wish/${k}`;

/** The prefix of the group of view `n`. */
export const groupPrefix = (number: number) => `group/${number}`;

/**
 * The requests of learners to a member, appended as one line of JSON each. The member empties the value when it has
 * read it.
 */
export const asksKey = (memberId: string) => `asks/${memberId}`;

/** The prefix of the keys of the group of a learner and one of the members that send it the state. */
export const pairPrefix = (ask: string) => `pair/${ask}`;
