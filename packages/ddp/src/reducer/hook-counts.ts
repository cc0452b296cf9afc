// Hook counts for `staticGraph`: the first backward counts how often each gradient is reported, and in later
// ones a gradient is final at that report. So a parameter may be reported several times in one backward
// (nested backwards, checkpointing), and parameters that are never used do not delay their bucket.

import { graphChanged } from '../errors.ts';
import type { BucketParam } from './bucket.ts';

export class HookCounts {
  readonly #params: readonly BucketParam[];
  readonly #rank: number;
  readonly #counts: Uint32Array;
  readonly #left: Int32Array;
  /** Whether the first backward has ended, so that the counts are known. */
  #isKnown = false;

  constructor(params: readonly BucketParam[], rank: number) {
    this.#params = params;
    this.#rank = rank;
    this.#counts = new Uint32Array(params.length);
    this.#left = new Int32Array(params.length);
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  begin(): void {
    this.#left.set(this.#counts);
  }

  /**
   * Counts a report. Returns true if it is the last one for this parameter in this backward; always false in
   * the first backward. Throws if there are more reports than in the first backward.
   */
  isLast(index: number): boolean {
    if (!this.#isKnown) {
      this.#counts[index]!++;
      return false;
    }
    if (--this.#left[index]! < 0) throw graphChanged([this.#params[index]!.name], this.#rank);
    return this.#left[index] === 0;
  }

  /** Returns the positions of the parameters that the first backward has used, or has not used. */
  positions(used: boolean): number[] {
    return [...this.#counts.keys()].filter((index) => this.#counts[index]! > 0 === used);
  }

  /**
   * Ends a backward in which not all gradients were reported. Throws if one is missing that the first
   * backward reported.
   */
  end(): void {
    const missing = this.#isKnown ? [...this.#left.keys()].filter((index) => this.#left[index]! > 0) : [];
    this.#isKnown = true;
    if (missing.length > 0) {
      throw graphChanged(
        missing.map((index) => this.#params[index]!.name),
        this.#rank,
      );
    }
  }
}
