// A schedule that runs other schedules one after another.

import { optionChecks } from '../../checks/options.ts';
import { type Check, checkValue } from '../../checks/value-checks.ts';
import { badOption, shown } from '../../errors.ts';
import { milestonesCheck } from './decay.ts';
import {
  type AnyOptimizer,
  checkRequiredOptions,
  checkSteps,
  Schedule,
  type ScheduleState,
} from './schedule.ts';

/** Options of SequentialLR. */
export interface SequentialLROptions {
  /** The schedules, in the order in which they take turns. */
  readonly schedules: readonly Schedule[];
  /** The numbers of steps after which the second and later schedules begin, rising; each begins at its own step 0. */
  readonly milestones: readonly number[];
}

const schedulesCheck: Check = {
  expected: 'a list of schedules',
  fits: (value) => Array.isArray(value) && value.every((item) => item instanceof Schedule),
};
const sequentialOptions = optionChecks<SequentialLROptions>({
  schedules: schedulesCheck,
  milestones: milestonesCheck,
});

/** Runs schedules of one optimiser one after another. Call step() of this schedule only, not of its parts. */
export class SequentialLR extends Schedule {
  readonly #schedules: readonly Schedule[];
  readonly #milestones: readonly number[];

  constructor(optimizer: AnyOptimizer, options: SequentialLROptions) {
    super(optimizer);
    checkRequiredOptions('SequentialLR', options, sequentialOptions);
    const { schedules, milestones } = options;
    checkValue('SequentialLR: schedules', schedules, schedulesCheck);
    checkValue('SequentialLR: milestones', milestones, milestonesCheck);
    const isRising = milestones.every((at, i) => at > (milestones[i - 1] ?? 0));
    if (schedules.length !== milestones.length + 1 || !isRising) {
      throw badOption('SequentialLR: milestones', `${schedules.length - 1} rising steps`, shown(milestones));
    }
    this.#schedules = [...schedules];
    this.#milestones = [0, ...milestones];
    this.start();
  }

  #indexAt(steps: number): number {
    return this.#milestones.findLastIndex((milestone) => milestone <= steps);
  }

  setAt(steps: number): void {
    checkSteps(steps);
    const at = this.#indexAt(steps);
    this.#schedules[at]!.setAt(steps - this.#milestones[at]!);
  }

  /** Within the turn of a schedule, goes on as that does; see FactorSchedule. @internal */
  override advance(from: number, to: number): void {
    const at = this.#indexAt(to);
    const start = this.#milestones[at]!;
    if (this.#indexAt(from) === at) this.#schedules[at]!.advance(from - start, to - start);
    else this.setAt(to);
  }

  /** Continues from `state`. A rate that is not the one of this schedule, as of a restored optimiser, stays. */
  override loadStateDict(state: ScheduleState): void {
    const given = this.lastLr;
    this.setAt(this.steps);
    const own = this.lastLr;
    super.loadStateDict(state);
    for (const [i, group] of this.groups.entries()) if (given[i] !== own[i]) group.lr = given[i]!;
  }
}
