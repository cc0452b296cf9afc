import type { Readable } from 'node:stream';
import { type Observe, parseProgress, parseReport } from './events.ts';

const maxLineLength = 1 << 16;

/**
 * Reads a rank's pipe to its end. Passes the reports to `observe`, and texts about progress to `showProgress`. Ignores
 * other lines.
 */
export function readReports(
  pipe: Readable,
  rank: number,
  observe: Observe,
  showProgress: (text: string) => void = () => {},
): void {
  let partial = '';
  pipe.on('error', () => {});
  pipe.setEncoding('utf8').on('data', (text: string) => {
    const lines = (partial + text).split('\n');
    partial = lines.pop()!;
    if (partial.length > maxLineLength) partial = '';
    for (const line of lines) {
      const progress = parseProgress(line);
      if (progress !== null) {
        showProgress(progress);
        continue;
      }
      const report = parseReport(line);
      if (report) observe({ kind: 'report', rank, report });
    }
  });
}
