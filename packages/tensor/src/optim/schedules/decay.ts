// Schedules that multiply the learning rate: at certain steps, at each step, or by a function of the step.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import {
  aFunction,
  anything,
  type Check,
  checkValue,
  nonNegative,
  nonNegativeInteger,
} from '../../checks/value-checks.ts';
import { badOption, shown } from '../../errors.ts';
import {
  type AnyOptimizer,
  checkedCount,
  checkRequiredOptions,
  FactorSchedule,
  LrSchedule,
} from './schedule.ts';

/** Options of StepLR. */
export interface StepLROptions {
  /** Number of steps between two multiplications. */
  readonly stepSize: number;
  /** Default 0.1. */
  readonly gamma?: number;
}

const stepOptions = optionChecks<StepLROptions>({ stepSize: anything, gamma: nonNegative });

/** Multiplies the rate by gamma (default 0.1) every `stepSize` steps. */
export class StepLR extends FactorSchedule {
  readonly #stepSize: number;
  readonly #gamma: number;

  constructor(optimizer: AnyOptimizer, options: StepLROptions) {
    super(optimizer);
    checkRequiredOptions('StepLR', options, stepOptions);
    this.#stepSize = checkedCount('stepSize', options.stepSize);
    this.#gamma = options.gamma ?? 0.1;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return initialLr * this.#gamma ** Math.floor(steps / this.#stepSize);
  }
}

/** Options of MultiStepLR. */
export interface MultiStepLROptions {
  /**
   * Numbers of steps after which the rate is multiplied, in any order. A repeated one counts as often as it is listed.
   */
  readonly milestones: readonly number[];
  /** Default 0.1. */
  readonly gamma?: number;
}

/** Checks a list of numbers of steps, in any order as in PyTorch. */
export const milestonesCheck: Check = {
  expected: 'a list of integers ≥ 0',
  fits: (value) => Array.isArray(value) && value.every(nonNegativeInteger.fits),
};
const multiStepOptions = optionChecks<MultiStepLROptions>({ milestones: anything, gamma: nonNegative });

/** Multiplies the rate by gamma (default 0.1) at each milestone. */
export class MultiStepLR extends FactorSchedule {
  readonly #milestones: readonly number[];
  readonly #gamma: number;

  constructor(optimizer: AnyOptimizer, options: MultiStepLROptions) {
    super(optimizer);
    checkRequiredOptions('MultiStepLR', options, multiStepOptions);
    checkValue('MultiStepLR: milestones', options.milestones, milestonesCheck);
    this.#milestones = [...options.milestones];
    this.#gamma = options.gamma ?? 0.1;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return initialLr * this.#gamma ** this.#milestones.filter((milestone) => milestone <= steps).length;
  }
}

const exponentialOptions = optionChecks<{ readonly gamma: number }>({ gamma: nonNegative });

/** Multiplies the rate by gamma at each step. */
export class ExponentialLR extends FactorSchedule {
  readonly #gamma: number;

  constructor(optimizer: AnyOptimizer, options: { readonly gamma: number }) {
    super(optimizer);
    checkRequiredOptions('ExponentialLR', options, exponentialOptions);
    checkValue('ExponentialLR: gamma', options.gamma, nonNegative);
    this.#gamma = options.gamma;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return initialLr * this.#gamma ** steps;
  }
}

/** Returns the factor of the initial rate after `steps` steps. */
export type LrFactor = (steps: number) => number;

/**
 * Multiplies the initial rate by a function of the number of steps. Takes one function for all groups, or one for each
 * group.
 */
export class LambdaLR extends LrSchedule {
  readonly #factors: readonly LrFactor[] | LrFactor;

  constructor(optimizer: AnyOptimizer, factor: LrFactor | readonly LrFactor[]) {
    super(optimizer);
    const isOneEach = Array.isArray(factor) && factor.length === optimizer.groups.length;
    if (typeof factor !== 'function' && !(isOneEach && factor.every(aFunction.fits))) {
      const expected = `a function, or ${optimizer.groups.length}, one for each group`;
      throw badOption('LambdaLR: factors', expected, shown(factor));
    }
    this.#factors = factor;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number, group: number): number {
    const factors = this.#factors;
    const own = typeof factors === 'function' ? factors : factors[group];
    // There was one for each group when the schedule was made.
    if (own === undefined)
      throw badOption(
        'LambdaLR: factors',
        `one for each of ${this.groups.length} groups`,
        `${factors.length}`,
      );
    return initialLr * own(steps);
  }
}

/** Options of LinearLR. */
export interface LinearLROptions {
  /** Default ⅓. */
  readonly startFactor?: number;
  /** Default 1. */
  readonly endFactor?: number;
  /** Number of steps from startFactor to endFactor; with 0, startFactor stays, as in PyTorch. Default 5. */
  readonly totalSteps?: number;
}

const linearOptions = optionChecks<LinearLROptions>({
  startFactor: nonNegative,
  endFactor: nonNegative,
  totalSteps: anything,
});

/** Multiplies the initial rate by a factor that changes linearly from startFactor to endFactor and stays there. */
export class LinearLR extends FactorSchedule {
  readonly #start: number;
  readonly #end: number;
  readonly #total: number;

  constructor(optimizer: AnyOptimizer, options: LinearLROptions = {}) {
    super(optimizer);
    checkOptions('LinearLR', options, linearOptions);
    this.#start = options.startFactor ?? 1 / 3;
    this.#end = options.endFactor ?? 1;
    this.#total = checkedCount('totalSteps', options.totalSteps ?? 5, 0);
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    const share = this.#total === 0 ? 0 : Math.min(steps, this.#total) / this.#total;
    return initialLr * (this.#start + (this.#end - this.#start) * share);
  }
}
