// A schedule that lowers the rate when a measured value, such as the loss on held-out data, stops getting better.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import {
  type Check,
  checkState,
  checkValue,
  finite,
  nonNegative,
  nonNegativeInteger,
  oneOf,
} from '../../checks/value-checks.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { completed, withOwnLists } from '../optimizer.ts';
import { type AnyOptimizer, RateSetter, refusePythonNames } from './schedule.ts';

/** Options of ReduceLROnPlateau. */
export interface ReduceLROnPlateauOptions {
  /** Whether a better value is lower ('min') or higher ('max'). Default 'min'. */
  readonly mode?: 'min' | 'max';
  /** The factor of the rate, below 1. Default 0.1. */
  readonly factor?: number;
  /** The number of values in a row that may be no better; the next one lowers the rate. Default 10. */
  readonly patience?: number;
  /** By how much a value must be better than the best one. Default 1e-4. */
  readonly threshold?: number;
  /** Whether the threshold is a share of the best value ('rel') or a difference ('abs'). Default 'rel'. */
  readonly thresholdMode?: 'rel' | 'abs';
  /** The number of values after a reduction that do not count as bad. Default 0. */
  readonly cooldown?: number;
  /** Minimum rate, one for all groups or one for each. Default 0. */
  readonly minLr?: number | readonly number[];
  /** A reduction by no more than this is left out. Default 1e-8. */
  readonly eps?: number;
}

/** State of ReduceLROnPlateau. The rates are in the state of the optimiser. */
export interface PlateauState {
  /** Number of calls of step(). */
  readonly steps: number;
  /** The best value; null before the first. */
  readonly best: number | null;
  /** Number of steps in a row without an improvement. */
  readonly numBadSteps: number;
  /** Number of steps for which bad ones are still not counted. */
  readonly cooldownCounter: number;
}

const factorCheck: Check = {
  expected: 'a number < 1',
  fits: (value) => finite.fits(value) && (value as number) < 1,
};
const minLrCheck: Check = {
  expected: 'a number ≥ 0, or a list of them',
  fits: (value) => nonNegative.fits(value) || (Array.isArray(value) && value.every(nonNegative.fits)),
};
const plateauOptions = optionChecks<ReduceLROnPlateauOptions>({
  ...{ mode: oneOf('min', 'max'), factor: factorCheck, patience: nonNegativeInteger, threshold: finite },
  ...{ thresholdMode: oneOf('rel', 'abs'), cooldown: nonNegativeInteger, minLr: minLrCheck },
  eps: nonNegative,
});

/** Multiplies the rates by a factor when a measured value has not got better for more than `patience` steps. */
export class ReduceLROnPlateau extends RateSetter {
  readonly #options: Required<ReduceLROnPlateauOptions>;
  #steps = 0;
  #best: number | null = null;
  #numBadSteps = 0;
  #cooldownCounter = 0;

  constructor(optimizer: AnyOptimizer, options: ReduceLROnPlateauOptions = {}) {
    super(optimizer);
    checkOptions('ReduceLROnPlateau', options, plateauOptions);
    this.#options = completed<Required<ReduceLROnPlateauOptions>>(
      {
        ...{ mode: 'min', factor: 0.1, patience: 10, threshold: 1e-4, thresholdMode: 'rel' },
        ...{ cooldown: 0, minLr: 0, eps: 1e-8 },
      },
      withOwnLists(options),
    );
    this.#checkRates();
  }

  /**
   * Counts a value: a number, or a tensor with one element, for which it waits. All ranks must pass the same value.
   * Call it after each epoch, or whenever the value is measured.
   */
  step(value: number | Tensor): void {
    const current: unknown = value instanceof Tensor ? Number(value.item()) : value;
    if (typeof current !== 'number')
      throw badOption('ReduceLROnPlateau: step', 'a number or a tensor with one element', shown(value));
    this.#checkRates();
    const { patience, cooldown } = this.#options;
    this.#steps++;
    if (this.#isBetter(current)) {
      this.#best = current;
      this.#numBadSteps = 0;
    } else this.#numBadSteps++;
    if (this.#cooldownCounter > 0) {
      this.#cooldownCounter--;
      this.#numBadSteps = 0;
    }
    if (this.#numBadSteps <= patience) return;
    this.#reduce();
    this.#cooldownCounter = cooldown;
    this.#numBadSteps = 0;
  }

  /** Number of calls of step(). */
  get steps(): number {
    return this.#steps;
  }

  #checkRates(): void {
    const { minLr } = this.#options;
    const count = this.groups.length;
    if (typeof minLr !== 'number' && minLr.length !== count)
      throw badOption(
        'ReduceLROnPlateau: minLr',
        `a number, or one for each of ${count} groups`,
        shown(minLr),
      );
  }

  #isBetter(value: number): boolean {
    const { mode, threshold, thresholdMode } = this.#options;
    const best = this.#best ?? (mode === 'min' ? Infinity : -Infinity);
    const sign = mode === 'min' ? -1 : 1;
    const bound = thresholdMode === 'rel' ? best * (1 + sign * threshold) : best + sign * threshold;
    return mode === 'min' ? value < bound : value > bound;
  }

  #reduce(): void {
    const { factor, minLr, eps } = this.#options;
    for (const [i, group] of this.groups.entries()) {
      const lr = Math.max(group.lr * factor, typeof minLr === 'number' ? minLr : minLr[i]!);
      if (group.lr - lr > eps) group.lr = lr;
    }
  }

  /** Returns the state as plain JSON. */
  stateDict(): PlateauState {
    return {
      steps: this.#steps,
      best: this.#best,
      numBadSteps: this.#numBadSteps,
      cooldownCounter: this.#cooldownCounter,
    };
  }

  /** Continues from `state`. The rates are part of the state of the optimiser. */
  loadStateDict(state: PlateauState): void {
    checkState('loadStateDict', state);
    const { steps, best, numBadSteps, cooldownCounter } = state;
    for (const [name, value] of Object.entries({ steps, numBadSteps, cooldownCounter }))
      checkValue(`ReduceLROnPlateau: ${name}`, value, nonNegativeInteger);
    checkValue('ReduceLROnPlateau: best', best, {
      expected: 'a number or null',
      fits: (value) => value === null || typeof value === 'number',
    });
    this.#steps = steps;
    this.#best = best;
    this.#numBadSteps = numBadSteps;
    this.#cooldownCounter = cooldownCounter;
  }

  static {
    refusePythonNames(ReduceLROnPlateau.prototype);
  }
}
