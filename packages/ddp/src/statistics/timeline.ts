// Times of the last backwards on this rank: two numbers per parameter and per bucket for each step, in a ring
// buffer. Statistics are derived from them only on request (statistics.ts).

import type { BucketPlan } from '../reducer/plan.ts';

/** Times are milliseconds of performance.now(). */
export interface StepTimes {
  /** Number of averaged backwards of this model before this one. */
  readonly step: number;
  /** When the first gradient was ready. */
  readonly beginMs: number;
  readonly plan: readonly BucketPlan[];
  /** Positions of the parameters, and when their gradients were final, in order of arrival. */
  readonly arrivals: number[];
  readonly arrivalMs: number[];
  /**
   * By bucket: when it was launched, and the sequence number of its first operation, or -1 if there was none or it
   * was one of another group.
   */
  readonly launchMs: number[];
  readonly seqs: number[];
  /** When backward ended and the program began to wait. 0 until then. */
  endMs: number;
  /** When all gradients were averaged. */
  doneMs: number;
}

const kept = 64;

export class Timeline {
  readonly #steps: StepTimes[] = [];
  #step = 0;
  #now: StepTimes | null = null;

  begin(plan: readonly BucketPlan[]): void {
    const beginMs = performance.now();
    const [arrivals, arrivalMs, launchMs, seqs]: number[][] = [[], [], [], []];
    this.#now = {
      step: this.#step,
      beginMs,
      plan,
      arrivals: arrivals!,
      arrivalMs: arrivalMs!,
      launchMs: launchMs!,
      seqs: seqs!,
      endMs: 0,
      doneMs: beginMs,
    };
  }

  arrived(index: number): void {
    this.#now?.arrivals.push(index);
    this.#now?.arrivalMs.push(performance.now());
  }

  launched(seq: number): void {
    this.#now?.launchMs.push(performance.now());
    this.#now?.seqs.push(seq);
  }

  /** Only the first call counts, because finish() comes after the end of backward. */
  backwardEnded(): void {
    if (this.#now?.endMs === 0) this.#now.endMs = performance.now();
  }

  /** Positions of the running step's parameters, in the order in which their gradients were final. */
  get arrivals(): readonly number[] {
    return this.#now?.arrivals ?? [];
  }

  /** Stores the finished step. */
  done(): void {
    if (!this.#now) return;
    this.#now.doneMs = performance.now();
    this.#steps[this.#step++ % kept] = this.#now;
    this.#now = null;
  }

  /** Discards a step that has failed. */
  drop(): void {
    this.#now = null;
  }

  /** The last steps, oldest first. */
  get steps(): readonly StepTimes[] {
    return [...this.#steps].sort((a, b) => a.step - b.step);
  }

  get last(): StepTimes | null {
    return this.#step === 0 ? null : this.#steps[(this.#step - 1) % kept]!;
  }
}
