// What a scenario gave on one rank, as plain data that survives JSON: the rank may be another process.
import { CollectiveError } from '../src/errors.ts';

export interface PlainError {
  readonly name: string;
  readonly message: string;
  readonly code: string | null;
  readonly rank: number | null;
  readonly peers: readonly number[];
  readonly secondary: boolean;
  readonly what: string;
  readonly cause: PlainError | null;
}

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

/** The error that `call` throws or rejects with; null if it does neither. */
export async function errorOf(call: () => unknown): Promise<PlainError | null> {
  try {
    await call();
    return null;
  } catch (error) {
    return plainError(error);
  }
}
