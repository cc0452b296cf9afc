// The schedule that goes with averages of weights: the rate moves to a fixed one and stays there.
import { optionChecks } from '../../checks/options.ts';
import {
  type Check,
  checkState,
  checkValue,
  nonNegative,
  nonNegativeInteger,
  oneOf,
} from '../../checks/value-checks.ts';
import { badOption, shown } from '../../errors.ts';
import {
  type AnyOptimizer,
  checkedCount,
  checkNoArguments,
  checkRequiredOptions,
  RateSetter,
  refusePythonNames,
  type ScheduleState,
} from './schedule.ts';

/** Options of SWALR. */
export interface SWALROptions {
  /** The rate at the end, one for all groups or one for each. */
  readonly swaLr: number | readonly number[];
  /** Number of steps until swaLr is reached. Default 10. */
  readonly annealEpochs?: number;
  /** Default 'cos'. */
  readonly annealStrategy?: 'cos' | 'linear';
}

/** State of SWALR. */
export interface SWALRState extends ScheduleState {
  /** The rate of each group before the first step. */
  readonly startLrs: readonly number[];
}

const rates: Check = {
  expected: 'a number ≥ 0, or a list of them',
  fits: (value) => nonNegative.fits(value) || (Array.isArray(value) && value.every(nonNegative.fits)),
};
const swaOptions = optionChecks<SWALROptions>({
  ...{ swaLr: rates, annealEpochs: nonNegativeInteger, annealStrategy: oneOf('cos', 'linear') },
});

/**
 * Moves the rate of each group from its value at the first step() to swaLr. Another schedule may run before that step.
 */
export class SWALR extends RateSetter {
  readonly #swaLrs: readonly number[];
  readonly #annealEpochs: number;
  readonly #strategy: 'cos' | 'linear';
  #steps = 0;
  #startLrs: readonly number[] = [];

  constructor(optimizer: AnyOptimizer, options: SWALROptions) {
    super(optimizer);
    checkRequiredOptions('SWALR', options, swaOptions);
    const { swaLr, annealEpochs = 10, annealStrategy = 'cos' } = options;
    checkValue('SWALR: swaLr', swaLr, rates);
    const count = this.groups.length;
    if (typeof swaLr !== 'number' && swaLr.length !== count)
      throw badOption('SWALR: swaLr', `a number, or one for each of ${count} groups`, shown(swaLr));
    this.#swaLrs = typeof swaLr === 'number' ? this.groups.map(() => swaLr) : [...swaLr];
    this.#annealEpochs = annealEpochs;
    this.#strategy = annealStrategy;
    this.#startLrs = this.lastLr;
    if (annealEpochs === 0) this.#set();
  }

  /** Advances the schedule. Call it after each step of the optimiser, or after each epoch. */
  step(...none: never[]): void {
    checkNoArguments(this, none);
    if (this.#steps === 0) this.#startLrs = this.lastLr;
    this.#steps++;
    this.#set();
  }

  /** Number of calls of step(). */
  get steps(): number {
    return this.#steps;
  }

  #set(): void {
    const done = this.#annealEpochs === 0 ? 1 : Math.min(1, this.#steps / this.#annealEpochs);
    const share = this.#strategy === 'cos' ? (1 - Math.cos(Math.PI * done)) / 2 : done;
    for (const [i, group] of this.groups.entries()) {
      const from = this.#startLrs[i] ?? group.lr;
      group.lr = this.#swaLrs[Math.min(i, this.#swaLrs.length - 1)]! * share + from * (1 - share);
    }
  }

  /** Returns the state that is needed to continue later, as plain JSON. */
  stateDict(): SWALRState {
    return { steps: this.#steps, startLrs: this.groups.map((group, i) => this.#startLrs[i] ?? group.lr) };
  }

  /**
   * Continues from `state`, and sets the rates that are scheduled there.
   *
   * @throws TensorError `ERR_TENSOR_ARGUMENT` if `state` is of another number of parameter groups; nothing has changed.
   */
  loadStateDict(state: SWALRState): void {
    checkState('loadStateDict', state);
    const { steps, startLrs } = state;
    const count = checkedCount('steps', steps, 0);
    const groups = this.groups.length;
    checkValue('SWALR: startLrs', startLrs, {
      expected: `a list of ${groups} numbers ≥ 0, one for each parameter group`,
      fits: (list) => Array.isArray(list) && list.length === groups && list.every(nonNegative.fits),
    });
    this.#steps = count;
    this.#startLrs = [...startLrs];
    if (count > 0) this.#set();
  }

  static {
    refusePythonNames(SWALR.prototype);
  }
}
