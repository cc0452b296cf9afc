// torchrun's error files, by which a rank reports the error that ended it if the rank or its launcher is not
// ringwise's:
// {"message": {"message": "ValueError: …", "extraInfo": {"py_callstack": "…", "timestamp": "<Unix seconds>"}}}

import { readFileSync, writeFileSync } from 'node:fs';
import { maxFieldLength, maxTextLength, reportError } from './last-words.ts';
import type { LastWords } from './words.ts';

/** The environment variable that names the error file of a rank. */
export const ERROR_FILE = 'TORCHELASTIC_ERROR_FILE';

/** Writes the error that is about to end this process, for the launcher to show. */
export function writeErrorFile(file: string, error: unknown): void {
  const { name, message, stack } = reportError(error);
  const extraInfo = { py_callstack: stack, timestamp: `${Math.floor(Date.now() / 1000)}` };
  try {
    writeFileSync(file, JSON.stringify({ message: { message: `${name}: ${message}`, extraInfo } }));
  } catch {
    // The folder has been removed, so the launcher has ended.
  }
}

/**
 * Reads the error of a rank that has ended; returns null if there is no readable file. The error gets the time
 * `endedNs`, because the time in the file is in whole seconds.
 */
export function readErrorFile(file: string | undefined, endedNs: bigint): LastWords | null {
  if (file === undefined) return null;
  try {
    const { message } = JSON.parse(readFileSync(file, 'utf8')) as { message?: unknown };
    if (message === undefined || message === null) return null;
    const { message: said = message, extraInfo } = message as { message?: unknown; extraInfo?: unknown };
    const text = textOf(said);
    const [, name = 'Error', rest = text] = /^([A-Za-z_][\w.]*): (.*)$/s.exec(text) ?? [];
    // Python lists the frame of the error last.
    const stack = textOf((extraInfo as { py_callstack?: unknown } | undefined)?.py_callstack ?? '');
    const error = {
      name: name.slice(0, maxFieldLength),
      message: rest.slice(0, maxTextLength),
      stack: stack.slice(-maxTextLength),
      fields: {},
      cause: null,
    };
    return { timeNs: endedNs, error };
  } catch {
    return null;
  }
}

/** Returns a text unchanged, and JSON for any other value, because programs may write anything into the file. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

let isRecording = false;

/**
 * Makes this process write an uncaught error to the file that TORCHELASTIC_ERROR_FILE names, so that torchrun
 * shows it with its stack. Does nothing without that variable, or if called again. Ranks of `ringwise run`
 * need not call it.
 */
export function recordErrors(): void {
  const file = process.env[ERROR_FILE];
  if (!file || isRecording) return;
  isRecording = true;
  process.on('uncaughtExceptionMonitor', (error) => writeErrorFile(file, error));
}
