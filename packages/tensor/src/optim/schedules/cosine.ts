// Schedules that follow a cosine wave from a high rate to a low one.
import { optionChecks } from '../../checks/options.ts';
import { anything, nonNegative } from '../../checks/value-checks.ts';
import { type AnyOptimizer, checkedCount, checkRequiredOptions, FactorSchedule } from './schedule.ts';

/** Interpolates along half a cosine wave, from `high` at share 0 to `low` at share 1. */
export const cosineBetween = (high: number, low: number, share: number): number =>
  low + ((high - low) * (1 + Math.cos(Math.PI * share))) / 2;

/** Options of CosineAnnealingLR. */
export interface CosineAnnealingLROptions {
  /** Steps until the lowest rate. After as many more the rate is back at its initial value, and so on. */
  readonly tMax: number;
  /** The lowest rate. Default 0. */
  readonly etaMin?: number;
}

const cosineAnnealingOptions = optionChecks<CosineAnnealingLROptions>({
  tMax: anything,
  etaMin: nonNegative,
});

/** Moves the rate along a cosine wave between the initial rate and etaMin. */
export class CosineAnnealingLR extends FactorSchedule {
  readonly #tMax: number;
  readonly #etaMin: number;

  constructor(optimizer: AnyOptimizer, options: CosineAnnealingLROptions) {
    super(optimizer);
    checkRequiredOptions('CosineAnnealingLR', options, cosineAnnealingOptions);
    this.#tMax = checkedCount('tMax', options.tMax);
    this.#etaMin = options.etaMin ?? 0;
    this.start();
  }

  protected override changed(lr: number, before: number, after: number): number {
    return this.#etaMin + super.changed(lr - this.#etaMin, before - this.#etaMin, after - this.#etaMin);
  }

  protected lrAt(steps: number, initialLr: number): number {
    return cosineBetween(initialLr, this.#etaMin, steps / this.#tMax);
  }
}

/** Options of WarmupCosineLR. */
export interface WarmupCosineLROptions {
  /** Number of steps in which the rate rises linearly to the initial rate. */
  readonly warmupSteps: number;
  /** Number of steps of the warm-up and the descent together. */
  readonly totalSteps: number;
  /** The lowest rate, as a share of the highest. Default 0.1. */
  readonly minFactor?: number;
}

const warmupCosineOptions = optionChecks<WarmupCosineLROptions>({
  warmupSteps: anything,
  totalSteps: anything,
  minFactor: nonNegative,
});

/** The usual schedule for GPTs: a linear warm-up, half a cosine down, then the lowest rate. */
export class WarmupCosineLR extends FactorSchedule {
  readonly #warmup: number;
  readonly #total: number;
  readonly #minFactor: number;

  constructor(optimizer: AnyOptimizer, options: WarmupCosineLROptions) {
    super(optimizer);
    checkRequiredOptions('WarmupCosineLR', options, warmupCosineOptions);
    this.#warmup = checkedCount('warmupSteps', options.warmupSteps, 0);
    this.#total = checkedCount('totalSteps', options.totalSteps, this.#warmup + 1);
    this.#minFactor = options.minFactor ?? 0.1;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    if (steps < this.#warmup) return (initialLr * (steps + 1)) / (this.#warmup + 1);
    const share = Math.min(1, (steps - this.#warmup) / (this.#total - this.#warmup));
    return cosineBetween(initialLr, initialLr * this.#minFactor, share);
  }
}
