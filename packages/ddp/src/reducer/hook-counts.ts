// For `staticGraph`: the first backward counts how often each gradient is reported; in later ones a gradient is final at
// that report. So a parameter may be reported several times in one backward (nested backwards, checkpointing), and those
// that are never used do not hold up their bucket.

import { graphChanged } from '../errors.ts';
import type { BucketParam } from './bucket.ts';

export class HookCounts {
  readonly #params: readonly BucketParam[];
  readonly #rank: number;
  readonly #counts: Uint32Array;
  readonly #left: Int32Array;
  /** Whether the first backward is over. */
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

  /** A report. True if it is the last one of this backward; never true in the first one. Throws if it is one too many. */
  isLast(index: number): boolean {
    if (!this.#isKnown) {
      this.#counts[index]!++;
      return false;
    }
    if (--this.#left[index]! < 0) throw graphChanged([this.#params[index]!.name], this.#rank);
    return this.#left[index] === 0;
  }

  /** Positions of the parameters that the first backward has used, or has not. */
  positions(used: boolean): number[] {
    return [...this.#counts.keys()].filter((index) => this.#counts[index]! > 0 === used);
  }

  /** At the end of a backward in which not all have come: throws if a gradient is missing that was there in the first one. */
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
