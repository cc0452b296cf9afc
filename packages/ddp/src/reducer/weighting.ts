// The weights of all ranks in a reduction, with weights or inside join(). The ranks exchange them before the buckets:
// every rank sends its weight, or that it has no more data, in one operation of 8 bytes per rank, which runs while
// backward continues. If the program has passed the total on every rank, they exchange weights only once per group, to
// check it.
import type { Group } from '@ringwise/collectives';
import { totalDiffers } from '../errors.ts';
import type { Works } from './works.ts';

const noMoreData = -1;

export interface Weighting {
  /** The sum of all weights, if it is known before anything is sent; else null. */
  readonly knownTotal: number | null;
  /** Waits for the exchange. The members below are valid afterwards. */
  settle(): Works;
  /** Divisor of a sum over all ranks, equal on all of them: the sum of all weights, or 1 if all are 0. */
  readonly divisor: number;
  /** The lowest rank that has data, or null. */
  readonly firstLive: number | null;
}

/** Maximum relative difference between the sum of the weights and the total that the program has passed. */
const tolerance = 1e-6;

/** The weighting of a reduction whose total the program has passed. Rank 0 has data. */
export class KnownTotal implements Weighting {
  readonly knownTotal: number;
  readonly divisor: number;
  readonly firstLive = 0;
  readonly #exchange: Participation | null;

  /** `exchange` gathers the weights to compare with the total; null if they are not compared. */
  constructor(total: number, exchange: Participation | null) {
    this.knownTotal = total;
    this.divisor = total;
    this.#exchange = exchange;
  }

  *settle(): Works {
    if (this.#exchange === null) return;
    yield* this.#exchange.settle();
    const { knownTotal } = this;
    const { totalWeight } = this.#exchange;
    if (Math.abs(totalWeight - knownTotal) > tolerance * knownTotal)
      throw totalDiffers(knownTotal, totalWeight);
  }
}

export class Participation implements Weighting {
  readonly knownTotal = null;
  /** Sum of the weights of all ranks. Valid once settled. */
  totalWeight = 0;
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
    this.totalWeight = this.#weights.reduce((sum, weight) => (weight === noMoreData ? sum : sum + weight), 0);
  }

  get divisor(): number {
    return this.totalWeight || 1; // all weights 0: so are all gradients
  }

  get firstLive(): number | null {
    const rank = this.#weights.findIndex((weight) => weight !== noMoreData);
    return rank === -1 ? null : rank;
  }
}
