// Ahead of the buckets of a backward with weights, or inside join(): every rank tells its weight, or that it has no more
// data. 8 bytes a rank, in an operation of its own that runs while backward goes on.
import type { Group } from '@ringwise/collectives';
import type { Works } from './works.ts';

const noMoreData = -1;

export class Participation {
  readonly #weights: Float64Array<ArrayBuffer>;
  readonly #work: ReturnType<Group['allGather']>;

  /** Starts it. `weight` is null on a rank that only answers for those that still have data. */
  constructor(group: Group, weight: number | null) {
    this.#weights = new Float64Array(group.size);
    this.#work = group.allGather(Float64Array.of(weight ?? noMoreData), this.#weights);
  }

  *settle(): Works {
    yield this.#work;
  }

  /** Once settled: of all ranks together. The same on all of them. */
  get totalWeight(): number {
    return this.#weights.reduce((sum, weight) => (weight === noMoreData ? sum : sum + weight), 0);
  }

  /** Once settled: the lowest rank that has data, or null. */
  get firstLive(): number | null {
    const rank = this.#weights.findIndex((weight) => weight !== noMoreData);
    return rank === -1 ? null : rank;
  }
}
