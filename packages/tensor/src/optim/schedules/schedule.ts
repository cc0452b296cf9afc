// A schedule sets the learning rates of an optimiser's groups. Each is a function of the number of steps taken and of
// the rate that the group started with, so its whole state is that number, and any schedule can be part of another.

import { checkValue, finite } from '../../checks/value-checks.ts';
import { badOption, shown } from '../../errors.ts';
import type { LrOptions, Optimizer, ParamGroup } from '../optimizer.ts';

/** The groups of an optimiser, whatever their options are. */
export type AnyOptimizer = Pick<Optimizer<LrOptions>, 'groups'>;
export type AnyGroup = ParamGroup<LrOptions>;

export interface ScheduleState {
  readonly steps: number;
}

export abstract class Schedule {
  protected readonly groups: readonly AnyGroup[];
  #steps = 0;

  /** A subclass ends its constructor with start(). */
  constructor(optimizer: AnyOptimizer) {
    if (!Array.isArray(optimizer?.groups))
      throw badOption(`${this.constructor.name}: optimizer`, 'an optimiser', shown(optimizer));
    this.groups = optimizer.groups;
    for (const group of this.groups) group.initialLr ??= group.lr;
  }

  /** Sets what the schedule rules, as it is after `steps` steps. */
  abstract setAt(steps: number): void;

  /** Sets the rates of the first step. */
  protected start(): void {
    this.setAt(0);
  }

  /** Called once after each step of the optimiser, or after each epoch: whatever the schedule counts. */
  step(): void {
    this.#steps++;
    this.setAt(this.#steps);
  }

  /** How often step() was called. */
  get steps(): number {
    return this.#steps;
  }

  /** The learning rate of each group now. */
  get lastLr(): number[] {
    return this.groups.map((group) => group.lr);
  }

  stateDict(): ScheduleState {
    return { steps: this.#steps };
  }

  /** Goes on from `state`, and sets the rates that belong to it. */
  loadStateDict(state: ScheduleState): void {
    this.#steps = checkedCount('steps', state.steps, 0);
    this.setAt(this.#steps);
  }
}

/** One whose rates are a formula. */
export abstract class LrSchedule extends Schedule {
  /** The learning rate after `steps` steps. `group` is its position. */
  protected abstract lrAt(steps: number, initialLr: number, group: number): number;

  setAt(steps: number): void {
    for (const [i, group] of this.groups.entries()) {
      const lr = this.lrAt(steps, group.initialLr!, i);
      checkValue(`${this.constructor.name}: lr after ${steps} steps`, lr, finite);
      group.lr = lr;
    }
  }
}

export function checkedCount(name: string, value: number, least = 1): number {
  if (!Number.isSafeInteger(value) || value < least) {
    throw badOption(`schedule: ${name}`, `an integer ≥ ${least}`, shown(value));
  }
  return value;
}
