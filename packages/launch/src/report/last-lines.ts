// The lines that a failed rank printed last, as far as a report shows them.

/** Most lines of the output of a rank that a report shows. */
const reportedLines = 10;

const reasonOf = (lines: readonly string[]): string | undefined =>
  lines.findLast((line) => line.startsWith('FATAL ERROR: '));

/** Returns the last lines, and before them the reason that V8 prints above its long stack when it aborts. */
export function lastLines(lines: readonly string[]): string[] {
  const last = lines.slice(-reportedLines);
  const reason = reasonOf(lines);
  return reason === undefined || last.includes(reason) ? last : [reason, ...last];
}

/** Returns whether V8 has aborted because JavaScript objects took all of its heap. */
export const heapWasFull = (lines: readonly string[]): boolean =>
  reasonOf(lines)?.includes('heap out of memory') === true;
