// The command's own stdout and stderr. On a pipe both are queues in this process: they must be emptied before
// process.exit(), and not be filled faster than their reader reads.

import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { Write } from '../report/output.ts';

/** Lines of the ranks to the stream of the same name. */
export function terminal(): Write {
  const writers = { stdout: writer(process.stdout), stderr: writer(process.stderr) };
  return (stream, text) => writers[stream](text);
}

function writer(target: Writable): (text: string) => Promise<void> | null {
  // One promise for all ranks that wait.
  let drained: Promise<void> | null = null;
  return (text) => {
    // Without a reader no drain will come.
    if (target.write(text) || target.errored) return null;
    drained ??= once(target, 'drain').then(
      () => {
        drained = null;
      },
      // Its reader has gone: nothing to wait for.
      () => {},
    );
    return drained;
  };
}

/** Resolves when everything written so far has left this process, or cannot leave it any more. */
export async function flushOutput(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    await new Promise<void>((resolve) => stream.write('', () => resolve()));
  }
}
