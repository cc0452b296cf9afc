// A schedule that applies other schedules at the same time.
import { type Check, checkValue } from '../../checks/value-checks.ts';
import { type AnyOptimizer, FactorSchedule, LrSchedule } from './schedule.ts';

const schedulesCheck: Check = {
  expected: 'a list of schedules that compute a rate from the initial rate',
  fits: (value) =>
    Array.isArray(value) && value.length > 0 && value.every((item) => item instanceof LrSchedule),
};

/**
 * Applies schedules of one optimiser at the same time: each starts from the rate that the one before computed, so that
 * the factors of all are multiplied. Call step() of this schedule only, not of its parts. A rate that the program has
 * set is multiplied from then on, unless one of the schedules replaces rates.
 */
export class ChainedScheduler extends FactorSchedule {
  readonly #schedules: readonly LrSchedule[];

  constructor(optimizer: AnyOptimizer, schedules: readonly LrSchedule[]) {
    super(optimizer);
    checkValue('ChainedScheduler: schedules', schedules, schedulesCheck);
    this.#schedules = [...schedules];
    this.start();
  }

  /** Sets the rates for the first step. The parts have changed the initial rates, which counts once. */
  protected override start(): void {
    this.setAt(0);
  }

  protected override changed(lr: number, before: number, after: number): number {
    const multiplies = this.#schedules.every((schedule) => schedule instanceof FactorSchedule);
    return multiplies ? super.changed(lr, before, after) : after;
  }

  protected lrAt(steps: number, initialLr: number, group: number): number {
    return this.#schedules.reduce((lr, schedule) => LrSchedule.rateOf(schedule, steps, lr, group), initialLr);
  }

  override setAt(steps: number): void {
    // Sets the options that some schedules set besides the rate, such as momentum.
    for (const schedule of this.#schedules) schedule.setAt(steps);
    super.setAt(steps);
  }
}
