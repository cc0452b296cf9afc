// Schedules that multiply the initial rate for some steps, or by a function of every step so far.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { aFunction, anything, nonNegative, share } from '../../checks/value-checks.ts';
import { badOption, shown } from '../../errors.ts';
import type { LrFactor } from './decay.ts';
import { type AnyOptimizer, checkedCount, FactorSchedule } from './schedule.ts';

/** Options of ConstantLR. */
export interface ConstantLROptions {
  /** From 0 to 1. Default ⅓. */
  readonly factor?: number;
  /** Number of steps with the factor; with 0, the factor stays, as in PyTorch. Default 5. */
  readonly totalSteps?: number;
}

const constantOptions = optionChecks<ConstantLROptions>({ factor: share, totalSteps: anything });

/** Multiplies the initial rate by a factor for `totalSteps` steps, after which the rate is the initial one. */
export class ConstantLR extends FactorSchedule {
  readonly #factor: number;
  readonly #total: number;

  constructor(optimizer: AnyOptimizer, options: ConstantLROptions = {}) {
    super(optimizer);
    checkOptions('ConstantLR', options, constantOptions);
    this.#factor = options.factor ?? 1 / 3;
    this.#total = checkedCount('totalSteps', options.totalSteps ?? 5, 0);
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    return steps < this.#total || this.#total === 0 ? initialLr * this.#factor : initialLr;
  }
}

/** Options of PolynomialLR. */
export interface PolynomialLROptions {
  /** Number of steps until the rate is 0; with 0, the initial rate stays, as in PyTorch. Default 5. */
  readonly totalSteps?: number;
  /** Default 1. */
  readonly power?: number;
}

const polynomialOptions = optionChecks<PolynomialLROptions>({ totalSteps: anything, power: nonNegative });

/** Multiplies the initial rate by (1 − steps ÷ totalSteps) ^ power; the rate then stays 0. */
export class PolynomialLR extends FactorSchedule {
  readonly #total: number;
  readonly #power: number;

  constructor(optimizer: AnyOptimizer, options: PolynomialLROptions = {}) {
    super(optimizer);
    checkOptions('PolynomialLR', options, polynomialOptions);
    this.#total = checkedCount('totalSteps', options.totalSteps ?? 5, 0);
    this.#power = options.power ?? 1;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number): number {
    if (this.#total === 0) return initialLr;
    return initialLr * (1 - Math.min(steps, this.#total) / this.#total) ** this.#power;
  }
}

/** A product of factors, and the number of steps that they belong to. */
interface Product {
  readonly steps: number;
  readonly value: number;
}

/**
 * Multiplies the rate at step n ≥ 1 by a function of n. Takes one function for all groups, or one for each group.
 */
export class MultiplicativeLR extends FactorSchedule {
  readonly #factors: readonly LrFactor[] | LrFactor;
  /** The last products by group, so that a step needs one call of the function. */
  readonly #products = new Map<number, Product>();

  constructor(optimizer: AnyOptimizer, factor: LrFactor | readonly LrFactor[]) {
    super(optimizer);
    const isOneEach = Array.isArray(factor) && factor.length === optimizer.groups.length;
    if (typeof factor !== 'function' && !(isOneEach && factor.every(aFunction.fits))) {
      const expected = `a function, or ${optimizer.groups.length}, one for each group`;
      throw badOption('MultiplicativeLR: factors', expected, shown(factor));
    }
    this.#factors = factor;
    this.start();
  }

  protected lrAt(steps: number, initialLr: number, group: number): number {
    const own = typeof this.#factors === 'function' ? this.#factors : this.#factors[group];
    // There was one for each group when the schedule was made.
    if (own === undefined)
      throw badOption(
        'MultiplicativeLR: factors',
        `one for each of ${this.groups.length} groups`,
        `${this.#factors.length}`,
      );
    const last = this.#products.get(group);
    let { steps: done, value } = last && last.steps <= steps ? last : { steps: 0, value: 1 };
    while (done < steps) value *= own(++done);
    this.#products.set(group, { steps, value });
    return initialLr * value;
  }
}
