// The lines that a failed rank printed last, as far as a report shows them.

/** Most lines of the output of a rank that a report shows. */
const reportedLines = 10;

const reasonOf = (lines: readonly string[]): string | undefined =>
  lines.findLast((line) => line.startsWith('FATAL ERROR: '));

const isSyntaxError = (line: string): boolean => /^SyntaxError[: ]/.test(line);

/**
 * Most lines that Node.js prints above the message of a syntax error: the place, the wrong line and, in TypeScript, its
 * neighbours, a caret, and an empty line.
 */
const linesAboveSyntaxError = 7;

/**
 * Finds the line with the place of a syntax error that Node.js has printed, such as file:///home/ann/train.mjs:2. The
 * groups of the match are the file and the number of the line.
 */
export function syntaxErrorPlace(lines: readonly string[]): RegExpExecArray | undefined {
  const at = lines.findLastIndex(isSyntaxError);
  const above = lines.slice(Math.max(0, at - linesAboveSyntaxError), Math.max(0, at));
  const places = above.map((line) => /^((?:file:\/\/)?\/.*):(\d+)$/.exec(line));
  return places.findLast((place) => place !== null) ?? undefined;
}

/**
 * Returns the last lines, and before them the reason that V8 prints above its long stack when it aborts, or the place
 * that Node.js prints above a syntax error and the message of that error, which may have a long stack too.
 */
export function lastLines(lines: readonly string[]): string[] {
  const last = lines.slice(-reportedLines);
  const place = syntaxErrorPlace(lines)?.[0];
  const message = place && lines.findLast(isSyntaxError);
  const earlier = [reasonOf(lines), place, message].filter((line) => line !== undefined);
  return [...earlier.filter((line) => !last.includes(line)), ...last];
}

/** Returns whether V8 has aborted because JavaScript objects took all of its heap. */
export const heapWasFull = (lines: readonly string[]): boolean =>
  reasonOf(lines)?.includes('heap out of memory') === true;
