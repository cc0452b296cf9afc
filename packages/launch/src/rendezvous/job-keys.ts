// Keys of the store that the launchers of a job share, other than those of their messages.

/** The run id. Launchers that join wait for it, and compare it with theirs. */
export const jobKey = 'launch/job';

/** Whether the launcher that keeps the store shows the ranks of all hosts, as 'true' or 'false'. */
export const watchedKey = 'launch/watched';

/** The flags of the launcher that keeps the store which must be the same on all hosts. Set before the run id. */
export const rulesKey = 'launch/rules';
