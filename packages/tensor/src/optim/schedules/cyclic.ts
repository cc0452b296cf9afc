// Smith's cyclic schedule: the rate rises from a base to a maximum and falls back, again and again, while momentum
// moves in the opposite direction. The rates that the optimiser was made with do not count.
import { optionChecks } from '../../checks/options.ts';
import {
  aFunction,
  type Check,
  decayRate,
  flag,
  nonNegative,
  oneOf,
  positive,
} from '../../checks/value-checks.ts';
import { withOwnLists } from '../optimizer.ts';
import { setMomentum } from './momentum.ts';
import { checkPerGroup, ofGroup, orList } from './per-group.ts';
import { type AnyOptimizer, checkRequiredOptions, LrSchedule } from './schedule.ts';

/** Options of CyclicLR. Lists have a number for each group. */
export interface CyclicLROptions {
  /** The rate at the beginning of each cycle. */
  readonly baseLr: number | readonly number[];
  /** The highest rate of the first cycle. */
  readonly maxLr: number | readonly number[];
  /** Number of steps in which the rate rises. Default 2000. */
  readonly stepSizeUp?: number;
  /** Number of steps in which the rate falls. Default stepSizeUp. */
  readonly stepSizeDown?: number | null;
  /**
   * How the height changes: 'triangular' keeps it, 'triangular2' halves it in each cycle, 'exp_range' multiplies it by
   * `gamma` in each step. Default 'triangular'. Ignored if there is a scaleFn.
   */
  readonly mode?: 'triangular' | 'triangular2' | 'exp_range';
  /** Default 1. */
  readonly gamma?: number;
  /** Returns the factor of the height for the number of the cycle (from 1) or of the step, as scaleMode selects. */
  readonly scaleFn?: ((at: number) => number) | null;
  /** The argument of scaleFn: the number of the cycle or of the iteration. Default 'cycle'. */
  readonly scaleMode?: 'cycle' | 'iterations';
  /** Whether to schedule momentum (or the first beta) too. Default true. */
  readonly cycleMomentum?: boolean;
  /** The lowest momentum, at the highest rate. Default 0.8. */
  readonly baseMomentum?: number | readonly number[];
  /** The highest momentum, at the lowest rate. Default 0.9. */
  readonly maxMomentum?: number | readonly number[];
}

const orNull = ({ expected, fits }: Check): Check => ({
  expected: `${expected} or null`,
  fits: (value) => value === null || fits(value),
});
const rates = orList(nonNegative);

const cyclicOptions = optionChecks<CyclicLROptions>({
  ...{ baseLr: rates, maxLr: rates, stepSizeUp: positive, stepSizeDown: orNull(positive) },
  ...{ mode: oneOf('triangular', 'triangular2', 'exp_range'), gamma: nonNegative },
  ...{ scaleFn: orNull(aFunction), scaleMode: oneOf('cycle', 'iterations'), cycleMomentum: flag },
  ...{ baseMomentum: orList(decayRate), maxMomentum: orList(decayRate) },
});

/** Moves the rate of each group between baseLr and maxLr. */
export class CyclicLR extends LrSchedule {
  readonly #options: CyclicLROptions;

  constructor(optimizer: AnyOptimizer, options: CyclicLROptions) {
    super(optimizer);
    checkRequiredOptions('CyclicLR', options, cyclicOptions);
    this.#options = withOwnLists(options);
    for (const name of ['baseLr', 'maxLr', 'baseMomentum', 'maxMomentum'] as const) {
      const value = options[name];
      const isOptional = name === 'baseMomentum' || name === 'maxMomentum';
      if (isOptional && value === undefined) continue;
      checkPerGroup(`CyclicLR: ${name}`, value, this.groups.length);
    }
    this.start();
  }

  /** Returns how far the rate is on its way from the base to the maximum: 0 at the base, 1 at the maximum. */
  #heightAt(steps: number): number {
    const { stepSizeUp = 2000, mode = 'triangular', gamma = 1, scaleFn, scaleMode = 'cycle' } = this.#options;
    const total = stepSizeUp + (this.#options.stepSizeDown ?? stepSizeUp);
    const rise = stepSizeUp / total;
    const cycle = Math.floor(1 + steps / total);
    const fraction = 1 + steps / total - cycle;
    const height = fraction <= rise ? fraction / rise : (fraction - 1) / (rise - 1);
    if (scaleFn) return height * scaleFn(scaleMode === 'cycle' ? cycle : steps);
    if (mode === 'exp_range') return height * gamma ** steps;
    return mode === 'triangular2' ? height / 2 ** (cycle - 1) : height;
  }

  protected lrAt(steps: number, _initialLr: number, group: number): number {
    const { baseLr, maxLr } = this.#options;
    const base = ofGroup(baseLr, group);
    return base + (ofGroup(maxLr, group) - base) * this.#heightAt(steps);
  }

  override setAt(steps: number): void {
    super.setAt(steps);
    const { cycleMomentum = true, baseMomentum = 0.8, maxMomentum = 0.9 } = this.#options;
    if (!cycleMomentum) return;
    const height = this.#heightAt(steps);
    for (const [i, group] of this.groups.entries()) {
      const most = ofGroup(maxMomentum, i);
      setMomentum('CyclicLR', group, most - (most - ofGroup(baseMomentum, i)) * height);
    }
  }
}
