// Shows the progress of rank 0's loop, which progress() of @ringwise/data reports under a shared symbol. If the
// launcher draws a status line, the text goes there; otherwise rank 0 prints a line every 10 s. The last line of a pass
// is always printed, so that it stays.

/** Environment variable of rank 0: 'live' if the launcher draws a status line, else 'lines'. */
export const PROGRESS = 'RINGWISE_PROGRESS';

const progressSymbol = Symbol.for('ringwise.progress');
const everyMs = 10_000;

/** `isEnd` is true for the last line of a pass over the data. */
export type ShowProgress = (line: string, isEnd: boolean) => void;

/** Shows progress from now on. `send` sends a text to the status line; null if there is none. */
export function installProgress(send: ((text: string) => void) | null): void {
  let printedMs = performance.now();
  const show: ShowProgress = (line, isEnd) => {
    const nowMs = performance.now();
    if (isEnd || (send === null && nowMs - printedMs >= everyMs)) {
      printedMs = nowMs;
      process.stderr.write(`${line}\n`);
    }
    send?.(isEnd ? '' : line);
  };
  Object.assign(globalThis, { [progressSymbol]: show });
}
