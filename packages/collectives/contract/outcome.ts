// Result of a scenario on one rank, as plain data that can be sent as JSON, because the rank may be another
// process.
import { CollectiveError } from '../src/errors.ts';

/** An error as plain data, so that it can be sent between processes. */
export interface PlainError {
  /** Name of the class. */
  readonly name: string;
  /** The sentence of the error. */
  readonly message: string;
  /** Stable code, or null for other errors than ours. */
  readonly code: string | null;
  /** Rank that reported it, or null. */
  readonly rank: number | null;
  /** Ranks that the failure names. */
  readonly peers: readonly number[];
  /** Whether the error is a consequence of another rank's. */
  readonly secondary: boolean;
  /** What happened, without the verb and the group. */
  readonly what: string;
  /** The error that caused it, or null. */
  readonly cause: PlainError | null;
}

/** Result of a scenario on one rank: its value, or the error that it threw. */
export type Outcome = { readonly value: unknown } | { readonly error: PlainError };

export function plainError(error: unknown): PlainError {
  const { name, message, cause } = error instanceof Error ? error : new Error(String(error));
  const known = CollectiveError.is(error)
    ? error
    : { code: null, rank: null, peers: [], secondary: false, what: message };
  const { code, rank, peers, secondary, what } = known;
  return {
    name,
    message,
    code,
    rank,
    peers: [...peers],
    secondary,
    what,
    cause: cause === undefined ? null : plainError(cause),
  };
}

/** Returns the error that `call` throws or rejects with, or null if it succeeds. */
export async function errorOf(call: () => unknown): Promise<PlainError | null> {
  try {
    await call();
    return null;
  } catch (error) {
    return plainError(error);
  }
}
