// The participation exchange before the buckets of a backward, with weights or inside join(): every rank
// sends its weight, or that it has no more data. It is one operation of 8 bytes per rank, which runs while
// backward continues.
import type { Group } from '@ringwise/collectives';
import type { Works } from './works.ts';

const noMoreData = -1;

export class Participation {
  readonly #weights: Float64Array<ArrayBuffer>;
  readonly #work: ReturnType<Group['allGather']>;

  /**
   * Starts the exchange. `weight` is null on a rank that has no more data and only takes part for the others.
   */
  constructor(group: Group, weight: number | null) {
    this.#weights = new Float64Array(group.size);
    this.#work = group.allGather(Float64Array.of(weight ?? noMoreData), this.#weights);
  }

  *settle(): Works {
    yield this.#work;
  }

  /** Sum of the weights of all ranks, equal on all of them. Valid once settled. */
  get totalWeight(): number {
    return this.#weights.reduce((sum, weight) => (weight === noMoreData ? sum : sum + weight), 0);
  }

  /** The lowest rank that has data, or null. Valid once settled. */
  get firstLive(): number | null {
    const rank = this.#weights.findIndex((weight) => weight !== noMoreData);
    return rank === -1 ? null : rank;
  }
}
