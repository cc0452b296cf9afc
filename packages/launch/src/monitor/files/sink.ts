// Files that reports go to while a job runs.

/** One report of a rank. */
export interface Report {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly rank: number;
  /** How often all ranks had been started again. */
  readonly restarts: number;
  readonly step: number;
  /** By name; numbers that are not finite are as they are. */
  readonly values: Readonly<Record<string, number>>;
}

/** All members throw what writing throws, for example ENOSPC. */
export interface Sink {
  readonly add: (report: Report) => void;
  /** What was added is on its way to the disk. */
  readonly flush: () => void;
  readonly close: () => void;
}
