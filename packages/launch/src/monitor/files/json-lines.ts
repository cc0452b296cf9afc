import { openSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '@ringwise/store';
import { AppendFile } from './append-file.ts';
import type { Sink } from './sink.ts';

const columns = new Set(['time', 'rank', 'restarts', 'step']);

/**
 * Returns a sink that appends one line of JSON per report. Numbers that are not finite become null. A reported
 * number with the name of another column gets the prefix "reported_". Throws if the file cannot be opened.
 */
export function jsonLinesSink(path: string): Sink {
  makeFolder(dirname(path));
  const file = new AppendFile(openSync(path, 'a'));
  return {
    add: ({ timeMs, rank, restarts, step, values }) => {
      const reported = Object.entries(values).map(([name, value]) => [
        columns.has(name) ? `reported_${name}` : name,
        value,
      ]);
      const line = { time: timeMs / 1000, rank, restarts, step, ...Object.fromEntries(reported) };
      file.add(Buffer.from(`${JSON.stringify(line)}\n`));
    },
    flush: () => file.flush(),
    close: () => file.close(),
  };
}
