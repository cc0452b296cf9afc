// Sends errors from a worker to the program's thread. Node.js clones the message, stack and cause of an error, but not
// its code, and the name only of errors of the language itself.
import { DataError } from '../errors.ts';

/** An error as it is sent, with the properties that cloning loses. */
export interface SentError {
  readonly error: unknown;
  readonly name?: string;
  readonly code?: string;
  readonly isDataError?: boolean;
}

/** Returns the message to post for a value that was thrown. */
export function packed(error: unknown): SentError {
  if (!(error instanceof Error)) return { error };
  const { name, code } = error as NodeJS.ErrnoException;
  return {
    error,
    ...(typeof name === 'string' && { name }),
    ...(typeof code === 'string' && { code }),
    isDataError: DataError.isInstance(error),
  };
}

/** Returns the error that packed() was given; a DataError becomes a DataError again. */
export function unpacked({ error, name, code, isDataError }: SentError): unknown {
  if (!(error instanceof Error)) return error;
  if (isDataError) {
    const { message, cause, stack } = error;
    const data = new DataError(code as DataError['code'], message, cause === undefined ? {} : { cause });
    return Object.assign(data, { stack });
  }
  if (name !== undefined && name !== error.name) error.name = name;
  return code === undefined ? error : Object.assign(error, { code });
}
