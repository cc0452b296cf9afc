// The error that ended a rank, in the form that is sent to the launcher.

export interface LastWords {
  /** Time of the error in the rank: process.hrtime.bigint(), the same clock for all processes of a host. */
  readonly timeNs: bigint;
  readonly error: ReportedError;
  /** Whether the program has a handler for uncaught errors, so that the rank may have survived this one. */
  readonly hasHandler?: boolean;
}

/** An error as text. */
export interface ReportedError {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /**
   * The error's own fields that JSON can represent. Among them are `code` and `secondary`, which is true if the rank
   * failed only because a peer did.
   */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: ReportedError | null;
}

/** Checks whether a value from another process is a time in nanoseconds, as decimal text. */
export function isDecimal(value: unknown): value is string {
  return typeof value === 'string' && /^-?\d{1,19}$/.test(value);
}
