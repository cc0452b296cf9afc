// The error that ended a rank, in the form that is sent to the launcher.

export interface LastWords {
  /** When the error was caught: process.hrtime.bigint(), the same clock for all processes of a host. */
  readonly timeNs: bigint;
  readonly error: ReportedError;
}

/** An error as text. */
export interface ReportedError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /**
   * The error's own fields that JSON can hold. Among them are `code` and `secondary`, which is true if the
   * rank failed only because a peer did.
   */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: ReportedError | null;
}
