// The command's own stdout and stderr. On a pipe both are queues in this process: they must be flushed before
// process.exit(), and must not be filled faster than they are read.

import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Write } from '../report/output.ts';

/** Returns a function that writes lines of the ranks to the stream of the same name. */
export function terminal(): Write {
  const writers = { stdout: writer(process.stdout), stderr: writer(process.stderr) };
  return (stream, text) => writers[stream](text);
}

function writer(target: Writable): (text: string) => Promise<void> | null {
  // One promise, shared by all ranks that wait.
  let drained: Promise<void> | null = null;
  return (text) => {
    // If the reader has closed the pipe, no 'drain' event will come.
    if (target.write(text) || target.errored) return null;
    drained ??= once(target, 'drain').then(
      () => {
        drained = null;
      },
      // The reader is gone, so there is nothing to wait for.
      () => {},
    );
    return drained;
  };
}

/**
 * Calls `listener` with the first error of writing to stdout or stderr, and an explanation of it. Without a listener
 * such an error ends the process.
 */
export function onOutputError(listener: (error: NodeJS.ErrnoException, what: string) => void): void {
  let isTold = false;
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].on('error', (error: NodeJS.ErrnoException) => {
      if (isTold) return;
      isTold = true;
      listener(
        error,
        isClosed(error) ? `${name} is no longer read` : `cannot write ${name}: ${error.message}`,
      );
    });
  }
}

/** Tells whether an error of an output means that its reader has closed the pipe. */
export const isClosed = ({ code }: NodeJS.ErrnoException): boolean => code === 'EPIPE';

/** Resolves when everything written so far has left this process, or its error has been reported. */
export async function flushOutput(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    // Even an empty write fails on a full disk.
    if (stream.writableLength === 0) continue;
    await new Promise<void>((resolve) => stream.write('', () => resolve()));
  }
  await setImmediate();
}
