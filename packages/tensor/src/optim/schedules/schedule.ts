// Base of the schedules, which set the learning rates of an optimiser's groups. A rate is a function of the
// number of steps and of the group's initial rate. So the number of steps is the whole state, and any
// schedule can be part of another.

import { foreignMember } from '../../checks/argument-errors.ts';
import { refuseForeign } from '../../checks/foreign-members.ts';
import { checkOptions, type OptionChecks } from '../../checks/options.ts';
import { checkState, checkValue, finite, nonNegative } from '../../checks/value-checks.ts';
import { badOption, shown } from '../../errors.ts';
import type { LrOptions, Optimizer, ParamGroup } from '../optimizer.ts';

/** The part of an optimiser that a schedule uses, with any options of its groups. */
export type AnyOptimizer = Pick<Optimizer<LrOptions>, 'groups'>;
export type AnyGroup = ParamGroup<LrOptions>;

/** State of a schedule. */
export interface ScheduleState {
  /** Number of calls of step(). */
  readonly steps: number;
}

/** Throws unless `options` is an object with options that `checks` knows and values that fit. */
export function checkRequiredOptions(name: string, options: unknown, checks: OptionChecks): void {
  if (options === undefined)
    throw badOption(`${name}: options`, `an object with ${[...checks.keys()][0]}`, 'none');
  checkOptions(name, options, checks);
}

/** Base of everything that sets the rates of an optimiser's groups. */
export abstract class RateSetter {
  protected readonly groups: readonly AnyGroup[];

  /** Stores each group's initial rate, unless an earlier schedule did. */
  constructor(optimizer: AnyOptimizer) {
    if (!Array.isArray(optimizer?.groups))
      throw badOption(`${this.constructor.name}: optimizer`, 'an optimiser', shown(optimizer));
    this.groups = optimizer.groups;
    for (const group of this.groups) group.initialLr ??= group.lr;
  }

  /** The learning rate of each group now. */
  get lastLr(): number[] {
    return this.groups.map((group) => group.lr);
  }
}

/** Throws for arguments of step() other than undefined, which would have no effect. */
export function checkNoArguments(schedule: RateSetter, given: readonly unknown[]): void {
  if (given.every((value) => value === undefined)) return;
  const next =
    'Each call is one step: for the rates of a later one call step() as often, or loadStateDict({ steps }).';
  throw badOption(`${schedule.constructor.name}.step`, 'no arguments', shown(given[0]), next);
}

/** Makes PyTorch's names of a schedule's members throw an error with our names. */
export const refusePythonNames = (prototype: RateSetter): void =>
  refuseForeign(prototype, 'schedule', foreignMember, {
    methods: {
      get_last_lr: 'the property lr of the optimiser',
      getLastLr: 'the property lr of the optimiser',
    },
  });

/**
 * Base of the schedules, which set options that an optimiser uses in its next step. A subclass must end its constructor
 * with start().
 */
export abstract class Schedule extends RateSetter {
  #steps = 0;

  /** Sets the scheduled values (rates, for some schedules also momentum) to those after `steps` steps. */
  abstract setAt(steps: number): void;

  /** Sets the values for the optimiser's first step. */
  protected start(): void {
    this.setAt(0);
  }

  /**
   * Advances the schedule. Call it after each step of the optimiser, or after each epoch if the schedule
   * counts epochs. Takes no arguments: a number, which PyTorch takes as the epoch, throws.
   */
  step(...none: never[]): void {
    checkNoArguments(this, none);
    const from = this.#steps;
    this.#steps = from + 1;
    this.advance(from, from + 1);
  }

  /** Sets the values that are scheduled after `to` steps, for a schedule that was at `from`. @internal */
  advance(_from: number, to: number): void {
    this.setAt(to);
  }

  /** Goes to a number of steps, and sets the values that are scheduled there. */
  protected moveTo(steps: number): void {
    this.#steps = steps;
    this.setAt(steps);
  }

  /** Number of calls of step(). */
  get steps(): number {
    return this.#steps;
  }

  /** Returns the state that is needed to continue later, as plain JSON. */
  stateDict(): ScheduleState {
    return { steps: this.#steps };
  }

  /** Continues from `state`, and sets the values that are scheduled there. */
  loadStateDict(state: ScheduleState): void {
    checkState('loadStateDict', state);
    this.moveTo(checkedCount('steps', state.steps, 0));
  }

  static {
    refusePythonNames(Schedule.prototype);
  }
}

/** A schedule that computes each group's rate from the number of steps and the group's initial rate. */
export abstract class LrSchedule extends Schedule {
  /** Returns the learning rate after `steps` steps for the group at position `group`. */
  protected abstract lrAt(steps: number, initialLr: number, group: number): number;

  /** Returns the rate that `schedule` computes, for a schedule that is made of others. */
  protected static rateOf(schedule: LrSchedule, steps: number, initialLr: number, group: number): number {
    return schedule.lrAt(steps, initialLr, group);
  }

  setAt(steps: number): void {
    checkSteps(steps);
    for (const [i, group] of this.groups.entries()) {
      // A group that was added since.
      group.initialLr ??= group.lr;
      const lr = this.lrAt(steps, group.initialLr, i);
      checkValue(`${this.constructor.name}: lr after ${steps} steps`, lr, finite);
      group.lr = lr;
    }
  }
}

/** A rate that the program or another schedule has set. `before` is what this schedule had there. */
interface Changed {
  readonly group: AnyGroup;
  readonly at: number;
  readonly initialLr: number;
  readonly lr: number;
  readonly before: number;
}

/**
 * A schedule whose rate is the initial one times a factor. As in PyTorch, step() changes a rate that the program or
 * another schedule has set by the ratio of the factors; other schedules replace such a rate by theirs.
 */
export abstract class FactorSchedule extends LrSchedule {
  /** Returns a rate that others have set, after the step in which this schedule goes from `before` to `after`. */
  protected changed(lr: number, before: number, after: number): number {
    return before === 0 ? lr + after : (lr * after) / before;
  }

  /** Returns the rates that are not those of this schedule after `steps` steps; null: the initial ones. */
  #ratesOfOthers(steps: number | null): Changed[] {
    return this.groups.flatMap((group, at) => {
      const { initialLr, lr } = group;
      if (initialLr === undefined) return [];
      const before = steps === null ? initialLr : this.lrAt(steps, initialLr, at);
      return lr === before ? [] : [{ group, at, initialLr, lr, before }];
    });
  }

  #change(others: readonly Changed[], steps: number): void {
    for (const { group, at, initialLr, lr, before } of others)
      group.lr = this.changed(lr, before, this.lrAt(steps, initialLr, at));
  }

  /** Sets the values for the optimiser's first step. */
  protected override start(): void {
    const others = this.#ratesOfOthers(null);
    super.start();
    this.#change(others, 0);
  }

  /** Goes from one number of steps to another. @internal */
  override advance(from: number, to: number): void {
    const others = this.#ratesOfOthers(from);
    super.advance(from, to);
    this.#change(others, to);
  }

  /** Continues from `state`. A rate that is not the one of this schedule, as of a restored optimiser, stays. */
  override loadStateDict(state: ScheduleState): void {
    const others = this.#ratesOfOthers(this.steps);
    super.loadStateDict(state);
    for (const { group, lr } of others) group.lr = lr;
  }
}

/** Throws unless `steps` is a number of steps; it may have a fraction. */
export const checkSteps = (steps: number): void => checkValue('schedule: steps', steps, nonNegative);

/** Returns `value`, or throws unless it is an integer ≥ `least`. */
export function checkedCount(name: string, value: number, least = 1): number {
  if (!Number.isSafeInteger(value) || value < least) {
    throw badOption(`schedule: ${name}`, `an integer ≥ ${least}`, shown(value));
  }
  return value;
}
