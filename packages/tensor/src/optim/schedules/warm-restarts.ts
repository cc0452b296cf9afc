// A cosine wave that starts again from the initial rate, each time after more steps (Loshchilov and Hutter, 2017).
import { optionChecks } from '../../checks/options.ts';
import { anything, checkState, checkValue, nonNegative } from '../../checks/value-checks.ts';
import { cosineBetween } from './cosine.ts';
import {
  type AnyOptimizer,
  checkedCount,
  checkRequiredOptions,
  LrSchedule,
  type ScheduleState,
} from './schedule.ts';

/** Options of CosineAnnealingWarmRestarts. */
export interface CosineAnnealingWarmRestartsOptions {
  /** Number of steps until the first restart. */
  readonly t0: number;
  /** By how much each period is longer than the one before: an integer ≥ 1. Default 1. */
  readonly tMult?: number;
  /** The lowest rate. Default 0. */
  readonly etaMin?: number;
}

const restartOptions = optionChecks<CosineAnnealingWarmRestartsOptions>({
  ...{ t0: anything, tMult: anything, etaMin: nonNegative },
});

/** Moves the rate along half a cosine wave from the initial rate to etaMin, again and again. */
export class CosineAnnealingWarmRestarts extends LrSchedule {
  readonly #first: number;
  readonly #growth: number;
  readonly #etaMin: number;

  constructor(optimizer: AnyOptimizer, options: CosineAnnealingWarmRestartsOptions) {
    super(optimizer);
    checkRequiredOptions('CosineAnnealingWarmRestarts', options, restartOptions);
    this.#first = checkedCount('t0', options.t0);
    this.#growth = checkedCount('tMult', options.tMult ?? 1);
    this.#etaMin = options.etaMin ?? 0;
    this.start();
  }

  /**
   * Advances the schedule by one, or to `epoch`, which may have a fraction: `step(epoch + i / batches)` after batch i.
   */
  override step(epoch?: number): void {
    if (epoch === undefined) {
      super.step();
      return;
    }
    checkValue('CosineAnnealingWarmRestarts: epoch', epoch, nonNegative);
    this.moveTo(epoch);
  }

  /** Continues from `state`, whose number of steps may have a fraction. */
  override loadStateDict(state: ScheduleState): void {
    checkState('loadStateDict', state);
    const { steps } = state;
    checkValue('CosineAnnealingWarmRestarts: steps', steps, nonNegative);
    this.moveTo(steps);
  }

  protected lrAt(steps: number, initialLr: number): number {
    let period = this.#first;
    let since = this.#growth === 1 ? steps % period : steps;
    while (since >= period) {
      since -= period;
      period *= this.#growth;
    }
    return cosineBetween(initialLr, this.#etaMin, since / period);
  }
}
