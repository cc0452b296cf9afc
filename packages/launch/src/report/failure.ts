// Determines whether a rank that has ended failed, when, and by which error. A rank has failed if it ended badly
// without having been stopped, or if its error came before the stop. An error for which the program has a handler
// counts only if the rank ended, or was stopped, soon after it: otherwise the program has survived it.

import type { LastWords } from './words.ts';

/**
 * Maximum nanoseconds between an error that a handler has received and the end that it caused. Ranks are stopped within
 * about 2 s of the first failure that their launcher notices (settleTimes).
 */
const survivedNs = 5_000_000_000n;

export interface End {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Time of the end, on the clock of process.hrtime. */
  readonly endedNs: bigint;
  /** Time at which the launcher began to stop the rank; null if it did not. */
  readonly stoppedNs: bigint | null;
  readonly lastWords: LastWords | null;
}

export interface Failure {
  /** Time of the failure; null if the rank succeeded, or ended because it was stopped. */
  readonly failedNs: bigint | null;
  /** The error to report; null if there is none, or if a signal ended the rank long after it had survived an error. */
  readonly lastWords: LastWords | null;
}

export function failureOf({ exitCode, signal, endedNs, stoppedNs, lastWords }: End): Failure {
  const isSurvived = lastWords?.hasHandler === true && (stoppedNs ?? endedNs) - lastWords.timeNs > survivedNs;
  const sinceNs = isSurvived || lastWords === null ? endedNs : lastWords.timeNs;
  const hasFailed = exitCode !== 0 && (stoppedNs === null || sinceNs < stoppedNs);
  if (!hasFailed) return { failedNs: null, lastWords };
  return { failedNs: sinceNs, lastWords: isSurvived && signal !== null ? null : lastWords };
}
