// Computes the completed share of a job and the time left, from the step and epoch that ranks report, and the totals if
// they report them.

/** The progress in one report. The totals are absent if the program does not name them. */
export interface ProgressReport {
  readonly step: number;
  /** Number of the epoch, from 0 on; with a fraction if the program knows it. */
  readonly epoch: number | undefined;
  readonly epochs: number | undefined;
  readonly steps: number | undefined;
}

export class Progress {
  /** Latest epoch and totals; null if no rank has reported them. */
  epoch: number | null = null;
  epochs: number | null = null;
  steps: number | null = null;
  /** Completed share of the job, from 0 to 1; null while it is unknown. */
  done: number | null = null;
  #epochStart: { readonly epoch: number; readonly step: number } | null = null;
  #stepsPerEpoch: number | null = null;
  /** The first point of this round at which `done` was known. */
  #first: { readonly ms: number; readonly done: number } | null = null;
  #last: { readonly ms: number; readonly done: number } | null = null;

  /** Notes that the ranks start again, perhaps from an earlier step and on fewer ranks. */
  restart(): void {
    this.epoch = null;
    this.done = null;
    this.#epochStart = null;
    this.#stepsPerEpoch = null;
    this.#first = null;
    this.#last = null;
  }

  add({ step, epoch, epochs, steps }: ProgressReport, ms: number): void {
    if (isTotal(steps)) this.steps = steps;
    if (isTotal(epochs)) this.epochs = epochs;
    if (epoch !== undefined && Number.isFinite(epoch) && epoch >= 0 && epoch >= (this.epoch ?? 0)) {
      this.#enter(Math.floor(epoch), step);
      this.epoch = epoch;
    }
    const done = this.#share(step);
    if (done === null || done < (this.done ?? 0)) return;
    this.done = done;
    this.#first ??= { ms, done };
    this.#last = { ms, done };
  }

  /** Time until the end at the mean speed of this round, in milliseconds; null while it is unknown. */
  etaMs(nowMs: number): number | null {
    if (!this.#first || !this.#last || this.#last.done <= this.#first.done) return null;
    const perShare = (this.#last.ms - this.#first.ms) / (this.#last.done - this.#first.done);
    return Math.max(0, (1 - this.#last.done) * perShare - (nowMs - this.#last.ms));
  }

  #enter(epoch: number, step: number): void {
    const start = this.#epochStart;
    if (start && epoch <= start.epoch) return;
    if (start && epoch === start.epoch + 1 && step > start.step) this.#stepsPerEpoch = step - start.step;
    this.#epochStart = { epoch, step };
  }

  #share(step: number): number | null {
    if (this.steps !== null) return Math.min(1, (step + 1) / this.steps);
    if (this.epochs === null || this.epoch === null) return null;
    if (!Number.isInteger(this.epoch)) return Math.min(1, this.epoch / this.epochs);
    // The length of an epoch is unknown until a whole epoch has been observed.
    if (this.#stepsPerEpoch === null || this.#epochStart === null) return null;
    const within = Math.min(1, (step + 1 - this.#epochStart.step) / this.#stepsPerEpoch);
    return Math.min(1, (this.epoch + within) / this.epochs);
  }
}

const isTotal = (value: number | undefined): value is number =>
  value !== undefined && Number.isFinite(value) && value > 0;
