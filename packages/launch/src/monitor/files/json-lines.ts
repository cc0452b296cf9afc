import { mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppendFile } from './append-file.ts';
import type { Sink } from './sink.ts';

/**
 * Returns a sink that appends one line of JSON per report. Numbers that are not finite become null. Throws if
 * the file cannot be opened.
 */
export function jsonLinesSink(path: string): Sink {
  mkdirSync(dirname(path), { recursive: true });
  const file = new AppendFile(openSync(path, 'a'));
  return {
    add: ({ timeMs, rank, restarts, step, values }) => {
      file.add(Buffer.from(`${JSON.stringify({ time: timeMs / 1000, rank, restarts, step, ...values })}\n`));
    },
    flush: () => file.flush(),
    close: () => file.close(),
  };
}
