// Hook counts for `staticGraph`. The first backward counts how often each gradient is reported; in later backwards a
// gradient is final when it has been reported as often. A parameter may therefore be reported several times in one
// backward (nested backwards, checkpointing), and parameters that are never used do not delay their bucket.

import { graphChanged } from '../errors.ts';
import type { BucketParam } from './bucket.ts';

export class HookCounts {
  readonly #params: readonly BucketParam[];
  #rank: number;
  readonly #counts: Uint32Array;
  readonly #left: Int32Array;
  /** The parameters that the first backward has used, in order of their last reports in it. */
  readonly #used = new Set<number>();
  /** Whether the first backward has ended, so that the counts are known. */
  #isKnown = false;

  constructor(params: readonly BucketParam[], rank: number) {
    this.#params = params;
    this.#rank = rank;
    this.#counts = new Uint32Array(params.length);
    this.#left = new Int32Array(params.length);
  }

  /** Changes the rank that errors name. */
  moveTo(rank: number): void {
    this.#rank = rank;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Begins a backward. The first one is counted anew if an earlier attempt did not end. */
  begin(): void {
    if (!this.#isKnown) {
      this.#counts.fill(0);
      this.#used.clear();
    }
    this.#left.set(this.#counts);
  }

  /**
   * Counts a report. Returns true if it is the last one for this parameter in this backward; always false in
   * the first backward. Throws if there are more reports than in the first backward.
   */
  isLast(index: number): boolean {
    if (!this.#isKnown) {
      this.#counts[index]!++;
      this.#used.delete(index);
      this.#used.add(index);
      return false;
    }
    if (--this.#left[index]! < 0) throw graphChanged([this.#params[index]!.name], this.#rank);
    return this.#left[index] === 0;
  }

  /** The positions of the parameters that the first backward has used, in the order in which they were final. */
  get used(): readonly number[] {
    return [...this.#used];
  }

  /** The positions of the parameters that the first backward has not used. */
  get unused(): readonly number[] {
    return [...this.#counts.keys()].filter((index) => !this.#used.has(index));
  }

  /** Throws if a report is missing that the first backward had. */
  checkComplete(): void {
    if (!this.#isKnown) return;
    const missing = [...this.#left.keys()].filter((index) => this.#left[index]! > 0);
    if (missing.length > 0) {
      throw graphChanged(
        missing.map((index) => this.#params[index]!.name),
        this.#rank,
      );
    }
  }

  /** Ends a backward: from the first one on, the counts are known. */
  end(): void {
    this.#isKnown = true;
  }
}
