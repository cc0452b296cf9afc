// Last words: the error that ends a rank, sent as one line of JSON on a pipe from the launcher. rank.ts
// writes it and rank-process.ts reads it. Writing it never changes how the process ends.

import { writeSync } from 'node:fs';
import { inspect } from 'node:util';
import { parseCrash } from './crash-words.ts';
import type { LastWords, ReportedError } from './words.ts';

/**
 * The environment variable with the pipe's descriptor. The rank removes it at once, so that its child
 * processes do not write to the pipe.
 */
export const LAST_WORDS_FD = 'RINGWISE_LAST_WORDS_FD';

const maxTextLength = 16_384;
const maxFieldLength = 2_048;
const maxCauses = 4;

/** Makes this process report on the pipe `fd` the uncaught error that is about to end it. */
export function installLastWords(fd: number): void {
  process.on('uncaughtExceptionMonitor', (error) => {
    try {
      const words = { timeNs: `${process.hrtime.bigint()}`, error: reportError(error) };
      writeSync(fd, `${JSON.stringify(words)}\n`);
    } catch {
      // The launcher has ended, or reading the error throws. The exit code still tells the failure.
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
  // `code` and `secondary` are listed by name, because a class may define them as getters.
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
 * Returns the last complete message on the pipe, or the crash if there is one. Returns null without a
 * message, or if other code has written to the pipe.
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

/** Checks whether a value from another process is a ReportedError. */
export function isReportedError(value: unknown): value is ReportedError {
  if (typeof value !== 'object' || value === null) return false;
  const { name, message, stack, fields, cause } = value as Record<string, unknown>;
  const isText = [name, message, stack].every((text) => typeof text === 'string');
  return (
    isText && typeof fields === 'object' && fields !== null && (cause === null || isReportedError(cause))
  );
}

/** Tells whether the error, or one of its causes, is marked as the consequence of a peer's failure. */
export function isSecondary(error: ReportedError): boolean {
  return error.fields.secondary === true || (error.cause !== null && isSecondary(error.cause));
}

/**
 * Makes an Error object from a reported error. It has the original's `name`, but not its class, which only
 * the rank has.
 */
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
