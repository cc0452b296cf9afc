import type { Readable } from 'node:stream';
import { type Observe, parseReport } from './events.ts';

const maxLineLength = 1 << 16;

/** Reads a rank's pipe to its end and passes the reports to `observe`. Ignores lines that are not reports. */
export function readReports(pipe: Readable, rank: number, observe: Observe): void {
  let partial = '';
  pipe.on('error', () => {});
  pipe.setEncoding('utf8').on('data', (text: string) => {
    const lines = (partial + text).split('\n');
    partial = lines.pop()!;
    if (partial.length > maxLineLength) partial = '';
    for (const line of lines) {
      const report = parseReport(line);
      if (report) observe({ kind: 'report', rank, report });
    }
  });
}
