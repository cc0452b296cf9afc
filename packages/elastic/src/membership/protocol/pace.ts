// Deadlines that follow the pace of the training: the time that a member may be silent depends on the duration of its
// steps.
import type { Patience } from './machine.ts';

/** Number of steps in the window of the median. */
const window = 32;
/** Steps between two computations of the median when the window is full. */
const between = 8;
/** Deadlines before the first steps, which take longer than others: code is compiled, data is opened. */
const first: Patience = { settleMs: 2_000, stallMs: 60_000 };

export class Pace {
  readonly #fixed: Partial<Patience>;
  readonly #steps: number[] = [];
  #last: number | null = null;
  #patience: Patience;
  /**
   * Steps until the deadlines are computed again. Every vote reads them, and sorting for each would take a notable part
   * of a short step.
   */
  #untilNext = 0;

  /** `fixed` replaces the deadlines that it names. */
  constructor(fixed: Partial<Patience>) {
    this.#fixed = fixed;
    this.#patience = { ...first, ...fixed };
  }

  /** Notes the end of a step. */
  tick(nowMs: number): void {
    if (this.#last !== null) {
      this.#steps.push(nowMs - this.#last);
      if (this.#steps.length > window) this.#steps.shift();
      if (this.#untilNext-- <= 0) this.#renew();
    }
    this.#last = nowMs;
  }

  /** Notes an interruption: the time until the next step is not counted. */
  pause(): void {
    this.#last = null;
  }

  /**
   * settleMs is 4 median steps, within 0.2 … 5 s; stallMs is 20 median steps, at least 2 s. The median is at most
   * `between` steps old.
   */
  get patience(): Patience {
    return this.#patience;
  }

  #renew(): void {
    this.#untilNext = this.#steps.length < window ? 0 : between;
    const sorted = [...this.#steps].sort((a, b) => a - b);
    const median = sorted[sorted.length >> 1]!;
    const own = {
      settleMs: Math.min(Math.max(4 * median, 200), 5_000),
      stallMs: Math.max(20 * median, 2_000),
    };
    this.#patience = { ...own, ...this.#fixed };
  }
}
