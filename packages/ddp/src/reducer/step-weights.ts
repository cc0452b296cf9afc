// The weights that the program has passed for the next reduction, and whether ranks may run out of data in it.
import type { Group } from '@ringwise/collectives';
import { shown } from '../check.ts';
import { badTotal, badWeight } from '../errors.ts';
import { KnownTotal, Participation, type Weighting } from './weighting.ts';

/** A copy of the weights, to restore them later. */
export interface SavedWeights {
  readonly own: number | null;
  readonly total: number | null;
}

export class StepWeights {
  /** Whether ranks may run out of data, so that each reduction begins with a participation exchange. */
  isJoining = false;
  /** Sum of this rank's weights since the last reduction; null if none was given. */
  #own: number | null = null;
  /** Sum of the weights of all ranks in the next reduction; null if the program has not passed it. */
  #total: number | null = null;
  /** Whether a total that the program has passed was compared with the sum of the weights in this group. */
  #hasComparedTotal = false;

  get own(): number | null {
    return this.#own;
  }

  /** Adds the weight of a backward. Throws ERR_DDP_INVALID, and adds nothing, for an invalid weight or total. */
  add(weight: number, total: number | undefined): void {
    if (!(typeof weight === 'number' && weight >= 0 && weight < Infinity)) throw badWeight(shown(weight));
    this.setTotal(total);
    this.#own = (this.#own ?? 0) + weight;
  }

  setTotal(total: number | undefined): void {
    if (total === undefined) return;
    if (!(typeof total === 'number' && total > 0 && total < Infinity)) throw badTotal(shown(total));
    if (this.isJoining) throw badTotal(`${total} inside join(), where it depends on which ranks have data`);
    if (this.#total !== null && this.#total !== total) throw badTotal(`${total} after ${this.#total}`);
    this.#total = total;
  }

  save(): SavedWeights {
    return { own: this.#own, total: this.#total };
  }

  restore({ own, total }: SavedWeights): void {
    this.#own = own;
    this.#total = total;
  }

  /** Starts the exchange of a reduction for which this rank has data; returns null if none is needed. */
  begin(group: Group): Weighting | null {
    if (!this.isJoining && this.#own === null) return null;
    return this.weightingOf(this.#own ?? 1, group);
  }

  /** Makes the weighting of a reduction to which this rank contributes `weight`, or null if it has no data. */
  weightingOf(weight: number | null, group: Group): Weighting {
    if (this.#total === null) return new Participation(group, weight);
    // A program that passes a wrong total usually does so in every step, so one comparison per group is enough.
    const isFirst = !this.#hasComparedTotal;
    this.#hasComparedTotal = true;
    return new KnownTotal(this.#total, isFirst ? new Participation(group, weight) : null);
  }

  /** Resets the weights after a reduction. */
  reset(): void {
    this.#own = null;
    this.#total = null;
  }

  /** Prepares for another group. */
  moved(): void {
    this.isJoining = false;
    this.#hasComparedTotal = false;
  }
}
