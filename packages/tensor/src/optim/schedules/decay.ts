// Schedules that multiply the learning rate: at steps, at each step, or as a function says.
import { badOption } from '../../errors.ts';
import { type AnyOptimizer, checkedCount, LrSchedule } from './schedule.ts';

/** × gamma (default 0.1) every `stepSize` steps. */
export class StepLR extends LrSchedule {
  readonly #stepSize: number;
  readonly #gamma: number;

  constructor(optimizer: AnyOptimizer, options: { readonly stepSize: number; readonly gamma?: number }) {
    super(optimizer);
    this.#stepSize = checkedCount('stepSize', options.stepSize);
    this.#gamma = options.gamma ?? 0.1;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return initialLr * this.#gamma ** Math.floor(steps / this.#stepSize);
  }
}

/** × gamma (default 0.1) at each milestone. */
export class MultiStepLR extends LrSchedule {
  readonly #milestones: readonly number[];
  readonly #gamma: number;

  constructor(
    optimizer: AnyOptimizer,
    options: { readonly milestones: readonly number[]; readonly gamma?: number },
  ) {
    super(optimizer);
    this.#milestones = [...options.milestones];
    this.#gamma = options.gamma ?? 0.1;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return initialLr * this.#gamma ** this.#milestones.filter((milestone) => milestone <= steps).length;
  }
}

/** × gamma at each step. */
export class ExponentialLR extends LrSchedule {
  readonly #gamma: number;

  constructor(optimizer: AnyOptimizer, options: { readonly gamma: number }) {
    super(optimizer);
    this.#gamma = options.gamma;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return initialLr * this.#gamma ** steps;
  }
}

export type LrFactor = (steps: number) => number;

/** × what a function of the step gives: one for all groups, or one for each. */
export class LambdaLR extends LrSchedule {
  readonly #factors: readonly LrFactor[] | LrFactor;

  constructor(optimizer: AnyOptimizer, factor: LrFactor | readonly LrFactor[]) {
    super(optimizer);
    if (typeof factor !== 'function' && factor.length !== optimizer.groups.length)
      throw badOption('LambdaLR: factors', `${optimizer.groups.length}, one for each group`, factor.length);
    this.#factors = factor;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number, group: number): number {
    const factors = this.#factors;
    return initialLr * (typeof factors === 'function' ? factors : factors[group]!)(steps);
  }
}

export interface LinearLROptions {
  /** Default ⅓. */
  readonly startFactor?: number;
  /** Default 1. */
  readonly endFactor?: number;
  /** Steps from the one to the other. Default 5. */
  readonly totalSteps?: number;
}

/** × a factor that goes in a straight line, and stays. */
export class LinearLR extends LrSchedule {
  readonly #start: number;
  readonly #end: number;
  readonly #total: number;

  constructor(optimizer: AnyOptimizer, options: LinearLROptions = {}) {
    super(optimizer);
    this.#start = options.startFactor ?? 1 / 3;
    this.#end = options.endFactor ?? 1;
    this.#total = checkedCount('totalSteps', options.totalSteps ?? 5);
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    const share = Math.min(steps, this.#total) / this.#total;
    return initialLr * (this.#start + (this.#end - this.#start) * share);
  }
}
