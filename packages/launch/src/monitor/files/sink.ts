// Files that receive the reports of a running job.

/** One report of a rank. */
export interface Report {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly rank: number;
  /** Number of times that all ranks had been started again. */
  readonly restarts: number;
  readonly step: number;
  /** Numbers by name; they may be infinite or NaN. */
  readonly values: Readonly<Record<string, number>>;
}

/** A target of reports. All members throw the errors of writing, such as ENOSPC. */
export interface Sink {
  readonly add: (report: Report) => void;
  /** Passes buffered reports to the operating system. */
  readonly flush: () => void;
  readonly close: () => void;
}
