/** Waiting and working times of all loops over a DataLoader. A batch is counted when the loop requests the next one. */
export interface LoaderStatistics {
  /** Number of batches that the loops have received. */
  readonly batches: number;
  /** Number of samples in these batches. */
  readonly samples: number;
  /** Milliseconds that the loop waited for batches, in total. */
  readonly waitMs: number;
  /** Milliseconds from the receipt of a batch until the loop asked for the next one, in total. */
  readonly workMs: number;
  /** Longest time in milliseconds that the program has waited for a batch. */
  readonly longestWaitMs: number;
}

/** Accumulates the times of a loader. */
export class WaitTimes {
  #batches = 0;
  #samples = 0;
  #waitMs = 0;
  #workMs = 0;
  #longestWaitMs = 0;

  /** Counts a batch that was requested, received and processed. */
  add(samples: number, waitMs: number, workMs: number): void {
    this.#batches++;
    this.#samples += samples;
    this.#waitMs += waitMs;
    this.#workMs += workMs;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, waitMs);
  }

  get statistics(): LoaderStatistics {
    return {
      batches: this.#batches,
      samples: this.#samples,
      waitMs: this.#waitMs,
      workMs: this.#workMs,
      longestWaitMs: this.#longestWaitMs,
    };
  }
}
