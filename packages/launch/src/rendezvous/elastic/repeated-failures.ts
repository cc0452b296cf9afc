// Counts repeated failures: at the same line of the program and the same step, on any slot. Restarting slots does not
// help against these.

import type { RankOutcome } from '../../agent/rank-process.ts';
import { isSecondary } from '../../report/last-words.ts';
import { firstUserFrame } from '../../report/report.ts';

/** Number of failures of the same kind at one step that ends the job. */
export const maxRepeats = 3;

export class RepeatedFailures {
  #step = -1;
  readonly #counts = new Map<string, number>();

  /**
   * Counts a failure at `step`, and returns the number of failures of the same kind at this step. Ignores failures
   * without an error, such as a kill, and consequences of another rank's failure.
   */
  count(outcome: RankOutcome, step: number): number {
    const error = outcome.lastWords?.error;
    if (!error || isSecondary(error)) return 0;
    if (step !== this.#step) this.#counts.clear();
    this.#step = step;
    const site = `${error.name} ${firstUserFrame(error.stack) ?? error.message}`;
    const count = (this.#counts.get(site) ?? 0) + 1;
    this.#counts.set(site, count);
    return count;
  }
}
