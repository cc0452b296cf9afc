// Smith's one-cycle schedule: the learning rate rises to a maximum and falls to a very low value, while momentum moves
// in the opposite direction. The rates that the optimiser was made with do not count.

import { optionChecks } from '../../checks/options.ts';
import { anything, checkValue, decayRate, flag, oneOf, positive, share } from '../../checks/value-checks.ts';
import { completed } from '../optimizer.ts';
import { cosineBetween } from './cosine.ts';
import { setMomentum } from './momentum.ts';
import { type AnyOptimizer, checkedCount, checkRequiredOptions, LrSchedule } from './schedule.ts';

/** Options of OneCycleLR. */
export interface OneCycleLROptions {
  /** The highest rate. */
  readonly maxLr: number;
  /** Number of steps of the whole cycle. */
  readonly totalSteps: number;
  /** The share of steps in which the rate rises. Default 0.3. */
  readonly pctStart?: number;
  /** Default 'cos'. */
  readonly annealStrategy?: 'cos' | 'linear';
  /** The first rate is maxLr ÷ this. Default 25. */
  readonly divFactor?: number;
  /** The last rate is the first ÷ this. Default 1e4. */
  readonly finalDivFactor?: number;
  /**
   * Whether the rate first falls to the first rate in as many steps as it rose, and then to the last rate.
   * Default false.
   */
  readonly threePhase?: boolean;
  /** Whether to schedule momentum (or the first beta) too. Default true. */
  readonly cycleMomentum?: boolean;
  /** The lowest momentum, at the highest rate. Default 0.85. */
  readonly baseMomentum?: number;
  /** The highest momentum, at the lowest rates. Default 0.95. */
  readonly maxMomentum?: number;
}

const oneCycleOptions = optionChecks<OneCycleLROptions>({
  maxLr: positive,
  totalSteps: anything,
  pctStart: { ...share, expected: 'a share from 0 to 1' },
  annealStrategy: oneOf('cos', 'linear'),
  divFactor: positive,
  finalDivFactor: positive,
  threePhase: flag,
  cycleMomentum: flag,
  baseMomentum: decayRate,
  maxMomentum: decayRate,
});

interface Phase {
  /** The number of steps at which the phase ends; may have a fraction. */
  readonly end: number;
  readonly lr: readonly [from: number, to: number];
  readonly momentum: readonly [from: number, to: number];
}

function phasesOf(options: Required<OneCycleLROptions>): Phase[] {
  const { maxLr, totalSteps, pctStart, divFactor, finalDivFactor, threePhase } = options;
  const first = maxLr / divFactor;
  const last = first / finalDivFactor;
  const low = options.baseMomentum;
  const high = options.maxMomentum;
  const top = pctStart * totalSteps - 1;
  const up: Phase = { end: top, lr: [first, maxLr], momentum: [high, low] };
  if (!threePhase) return [up, { end: totalSteps - 1, lr: [maxLr, last], momentum: [low, high] }];
  return [
    up,
    { end: 2 * pctStart * totalSteps - 2, lr: [maxLr, first], momentum: [low, high] },
    { end: totalSteps - 1, lr: [first, last], momentum: [high, high] },
  ];
}

/** Schedules one cycle of `totalSteps` steps; the rate then stays at its last value. */
export class OneCycleLR extends LrSchedule {
  readonly #phases: readonly Phase[];
  readonly #between: typeof cosineBetween;
  readonly #cyclesMomentum: boolean;

  constructor(optimizer: AnyOptimizer, options: OneCycleLROptions) {
    super(optimizer);
    checkRequiredOptions('OneCycleLR', options, oneCycleOptions);
    checkValue('OneCycleLR: maxLr', options.maxLr, positive);
    checkedCount('totalSteps', options.totalSteps);
    const all = completed<Required<OneCycleLROptions>>(
      {
        ...{
          maxLr: 0,
          totalSteps: 0,
          pctStart: 0.3,
          annealStrategy: 'cos',
          divFactor: 25,
          finalDivFactor: 1e4,
        },
        ...{ threePhase: false, cycleMomentum: true, baseMomentum: 0.85, maxMomentum: 0.95 },
      },
      options,
    );
    this.#phases = phasesOf(all);
    this.#between =
      all.annealStrategy === 'cos' ? cosineBetween : (from, to, share) => from + (to - from) * share;
    this.#cyclesMomentum = all.cycleMomentum;
    this.start();
  }

  /** Returns the value after `steps` steps, interpolated inside its phase. */
  #at(steps: number, what: 'lr' | 'momentum'): number {
    let start = 0;
    for (const phase of this.#phases) {
      const [from, to] = phase[what];
      if (steps <= phase.end)
        return this.#between(from, to, phase.end > start ? (steps - start) / (phase.end - start) : 1);
      start = phase.end;
    }
    return this.#phases.at(-1)![what][1];
  }

  protected lrAt(steps: number): number {
    return this.#at(steps, 'lr');
  }

  override setAt(steps: number): void {
    super.setAt(steps);
    if (!this.#cyclesMomentum) return;
    const momentum = this.#at(steps, 'momentum');
    for (const group of this.groups) setMomentum('OneCycleLR', group, momentum);
  }
}
