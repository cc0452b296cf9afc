// Last words: the error that ends a rank, which the rank writes as one line of JSON to a pipe of the launcher
// (installed by rank.ts, read by rank-process.ts). Writing it does not change how the process ends, with one exception:
// Node's text is not printed for an error that is only the consequence of a peer's error. The launcher's report has a
// line for it, so that the root cause is easy to find. An uncaught error that the program then handles is written, too.

import { writeSync } from 'node:fs';
import { inspect } from 'node:util';
import { parseCrash } from './crash-words.ts';
import { isDecimal, type LastWords, type ReportedError } from './words.ts';

/**
 * The environment variable with the pipe's descriptor. The rank removes it at once, so that its child
 * processes do not write to the pipe.
 */
export const LAST_WORDS_FD = 'RINGWISE_LAST_WORDS_FD';

/** Maximum characters of a reported error's message, and of its stack. */
export const maxTextLength = 16_384;
/** Maximum characters of a reported error's name, and of one of its fields as JSON. */
export const maxFieldLength = 2_048;
const maxCauses = 4;

/** Makes this process write every uncaught error to the pipe `fd`, before handlers of the program see it. */
export function installLastWords(fd: number): void {
  const tell: NodeJS.UncaughtExceptionListener = (error, origin) => {
    try {
      const timeNs = `${process.hrtime.bigint()}`;
      const reported = reportError(error);
      const hasHandler = hasErrorHandler();
      writeSync(fd, `${JSON.stringify({ timeNs, error: reported, hasHandler })}\n`);
      if (reported.fields.secondary !== true || hasHandler) return;
    } catch {
      // The launcher has ended, or reading the error throws. The exit code still shows the failure.
      return;
    }
    const others = process.listeners('uncaughtExceptionMonitor').filter((listener) => listener !== tell);
    for (const listener of others) listener.call(process, error, origin);
    process.exit(1);
  };
  process.on('uncaughtExceptionMonitor', tell);
}

/** Returns whether the program handles uncaught errors, so that they do not end the process. */
export function hasErrorHandler(): boolean {
  return process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback();
}

/**
 * Converts an error to data that JSON can hold, with limits on the lengths of texts and on nested causes. Never throws:
 * a program may throw an error whose members are not texts, or whose getters throw.
 */
export function reportError(error: unknown, depth = 0): ReportedError {
  const of = (key: string) => read(() => (error as Record<string, unknown>)[key]);
  if (!read(() => error instanceof Error)) {
    const message = inspected(error).slice(0, maxTextLength);
    return { name: 'Error', message, stack: '', fields: {}, cause: null };
  }
  const fields: Record<string, unknown> = {};
  // `code` and `secondary` are listed by name, because a class may define them as getters.
  for (const key of new Set(['code', 'secondary', ...(read(() => Object.keys(error as Error)) ?? [])])) {
    const text = read(() => JSON.stringify(of(key)));
    // A copy, because a thread sends it by structured clone, which refuses functions inside the value.
    if (key !== 'cause' && text !== undefined && text.length <= maxFieldLength)
      fields[key] = JSON.parse(text);
  }
  const cause = of('cause');
  return {
    name: textOf(of('name') ?? 'Error', maxFieldLength),
    message: textOf(of('message') ?? '', maxTextLength),
    stack: textOf(of('stack') ?? '', maxTextLength),
    fields,
    cause: cause === undefined || depth === maxCauses ? null : reportError(cause, depth + 1),
  };
}

/** Returns what `get` returns, or undefined if it throws, as a getter of the program may. */
function read<T>(get: () => T): T | undefined {
  try {
    return get();
  } catch {
    return undefined;
  }
}

/** Returns a text, or the text of any other value, cut to the given number of characters. */
function textOf(value: unknown, most: number): string {
  return (typeof value === 'string' ? value : inspected(value)).slice(0, most);
}

const inspected = (value: unknown): string => read(() => inspect(value)) ?? 'a value without a text';

/** Characters of the pipe's text that are kept at least: more than the longest report of an error or a crash has. */
const keptLength = 4 << 20;

/**
 * Returns the text of the pipe with `more` added. Drops the beginning of a text that has become too long, because a
 * program that handles its uncaught errors may report any number of them.
 */
export function joinedWords(text: string, more: string): string {
  const joined = text + more;
  return joined.length > 2 * keptLength ? joined.slice(-keptLength) : joined;
}

/**
 * Returns the native crash in the text of the pipe if there is one, otherwise the error in its last complete line;
 * null if that line is missing or is no error, because other code has written to the pipe.
 */
export function parseLastWords(text: string): LastWords | null {
  const crash = parseCrash(text);
  if (crash !== null) return crash;
  const line = text.split('\n').at(-2);
  if (!line) return null;
  try {
    const { timeNs, error, hasHandler } = JSON.parse(line) as Record<string, unknown>;
    if (!isDecimal(timeNs) || !isReportedError(error)) return null;
    return { timeNs: BigInt(timeNs), error, hasHandler: hasHandler === true };
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
