// The error that ended a rank, as it is sent to the launcher.

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
  /** Own fields that JSON can hold, among them code, and secondary: "I failed only because a peer did". */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: ReportedError | null;
}
