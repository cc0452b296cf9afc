// What the ranks of a reduction weigh together, with weights or inside join(). Either they exchange it before the
// buckets: every rank sends its weight, or that it has no more data, in one operation of 8 bytes per rank, which runs
// while backward continues. Or the program has said it on every rank; then nothing is sent for it.
import type { Group } from '@ringwise/collectives';
import type { Works } from './works.ts';

const noMoreData = -1;

export interface Weighting {
  /** The sum of all weights, if it is known before anything is sent; else null. */
  readonly knownTotal: number | null;
  /** Ends when the members below are valid. */
  settle(): Works;
  /** Sum of the weights of all ranks, equal on all of them. */
  readonly totalWeight: number;
  /** The lowest rank that has data, or null. */
  readonly firstLive: number | null;
}

/** Makes the weighting of a reduction whose weights add up to `total`, on all ranks. Rank 0 has data. */
export function knownWeighting(total: number): Weighting {
  return { knownTotal: total, *settle() {}, totalWeight: total, firstLive: 0 };
}

export class Participation implements Weighting {
  readonly knownTotal = null;
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

  get totalWeight(): number {
    return this.#weights.reduce((sum, weight) => (weight === noMoreData ? sum : sum + weight), 0);
  }

  get firstLive(): number | null {
    const rank = this.#weights.findIndex((weight) => weight !== noMoreData);
    return rank === -1 ? null : rank;
  }
}
