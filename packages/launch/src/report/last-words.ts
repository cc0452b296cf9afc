// What a rank says when an error ends it: one line of JSON on a pipe that the launcher gave it. rank.ts writes
// it, rank-process.ts reads it. It never changes how the process ends.

import { writeSync } from 'node:fs';
import { inspect } from 'node:util';
import { parseCrash } from './crash-words.ts';
import type { LastWords, ReportedError } from './words.ts';

/** Names the pipe's number in a rank's environment; removed there at once, so that no descendant writes to it. */
export const LAST_WORDS_FD = 'RINGWISE_LAST_WORDS_FD';

const maxTextLength = 16_384;
const maxFieldLength = 2_048;
const maxCauses = 4;

/** Reports the error that is about to end this process. */
export function installLastWords(fd: number): void {
  process.on('uncaughtExceptionMonitor', (error) => {
    try {
      const words = { timeNs: `${process.hrtime.bigint()}`, error: reportError(error) };
      writeSync(fd, `${JSON.stringify(words)}\n`);
    } catch {
      // The launcher is gone, or the error cannot be read: the exit code still tells.
    }
  });
}

export function reportError(error: unknown, depth = 0): ReportedError {
  if (!(error instanceof Error)) {
    return {
      name: 'Error',
      message: inspect(error).slice(0, maxTextLength),
      stack: '',
      fields: {},
      cause: null,
    };
  }
  const own = error as Error & Record<string, unknown>;
  const fields: Record<string, unknown> = {};
  // code and secondary by name: a class may have them as getters.
  for (const key of new Set(['code', 'secondary', ...Object.keys(own)])) {
    const value = own[key];
    if (key !== 'cause' && fits(value)) fields[key] = value;
  }
  const { cause } = own;
  return {
    name: error.name.slice(0, maxFieldLength),
    message: error.message.slice(0, maxTextLength),
    stack: (error.stack ?? '').slice(0, maxTextLength),
    fields,
    cause: cause === undefined || depth === maxCauses ? null : reportError(cause, depth + 1),
  };
}

function fits(value: unknown): boolean {
  try {
    const text = JSON.stringify(value);
    return text !== undefined && text.length <= maxFieldLength;
  } catch {
    return false;
  }
}

/**
 * The last complete message on the pipe, a crash before any other; null without one, or if somebody else wrote to the
 * pipe.
 */
export function parseLastWords(text: string): LastWords | null {
  const crash = parseCrash(text);
  if (crash !== null) return crash;
  const line = text.split('\n').at(-2);
  if (!line) return null;
  try {
    const { timeNs, error } = JSON.parse(line) as { timeNs: string; error: unknown };
    return isReportedError(error) ? { timeNs: BigInt(timeNs), error } : null;
  } catch {
    return null;
  }
}

/** Whether a value that came from another process is such an error. */
export function isReportedError(value: unknown): value is ReportedError {
  if (typeof value !== 'object' || value === null) return false;
  const { name, message, stack, fields, cause } = value as Record<string, unknown>;
  const isText = [name, message, stack].every((text) => typeof text === 'string');
  return (
    isText && typeof fields === 'object' && fields !== null && (cause === null || isReportedError(cause))
  );
}

/** Whether the error, or one that caused it, says that it is only the echo of a peer's failure. */
export function isSecondary(error: ReportedError): boolean {
  return error.fields.secondary === true || (error.cause !== null && isSecondary(error.cause));
}

/** The error again, as an object. Its class is the rank's own and does not travel; `name` tells it. */
export function reviveError(reported: ReportedError): Error {
  const error = new Error(
    reported.message,
    reported.cause ? { cause: reviveError(reported.cause) } : undefined,
  );
  Object.assign(error, reported.fields);
  for (const key of ['name', 'stack'] as const) {
    if (reported[key])
      Object.defineProperty(error, key, { value: reported[key], configurable: true, writable: true });
  }
  return error;
}
