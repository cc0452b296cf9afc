// Smith's one-cycle schedule: the learning rate rises to a maximum and falls to a very low value, while momentum moves
// in the opposite direction. The rates that the optimiser was made with do not count.

import { cycleEnded } from '../../checks/argument-errors.ts';
import { optionChecks } from '../../checks/options.ts';
import {
  anything,
  atLeastOne,
  checkValue,
  decayRate,
  flag,
  oneOf,
  positive,
  share,
} from '../../checks/value-checks.ts';
import { badOption } from '../../errors.ts';
import { completed, withOwnLists } from '../optimizer.ts';
import { cosineBetween } from './cosine.ts';
import { setMomentum } from './momentum.ts';
import { checkPerGroup, ofGroup, orList } from './per-group.ts';
import { type AnyOptimizer, checkedCount, checkRequiredOptions, checkSteps, LrSchedule } from './schedule.ts';

/** Options of OneCycleLR. Lists have a number for each group. */
export interface OneCycleLROptions {
  /** The highest rate. */
  readonly maxLr: number | readonly number[];
  /** Number of steps of the whole cycle. Default: epochs × stepsPerEpoch, of which both are then needed. */
  readonly totalSteps?: number;
  /** Number of epochs, beside stepsPerEpoch. Ignored beside totalSteps, as in PyTorch. */
  readonly epochs?: number;
  /** Number of steps of an epoch. */
  readonly stepsPerEpoch?: number;
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
  readonly baseMomentum?: number | readonly number[];
  /** The highest momentum, at the lowest rates. Default 0.95. */
  readonly maxMomentum?: number | readonly number[];
}

const oneCycleOptions = optionChecks<OneCycleLROptions>({
  maxLr: orList(positive),
  totalSteps: anything,
  epochs: atLeastOne,
  stepsPerEpoch: atLeastOne,
  pctStart: { ...share, expected: 'a share from 0 to 1' },
  annealStrategy: oneOf('cos', 'linear'),
  divFactor: positive,
  finalDivFactor: positive,
  threePhase: flag,
  cycleMomentum: flag,
  baseMomentum: orList(decayRate),
  maxMomentum: orList(decayRate),
});

interface Phase {
  /** The number of steps at which the phase ends; may have a fraction. */
  readonly end: number;
  readonly lr: readonly [from: number, to: number];
  readonly momentum: readonly [from: number, to: number];
}

type Completed = Required<Omit<OneCycleLROptions, 'epochs' | 'stepsPerEpoch'>>;

/** Returns the number of steps of the cycle, however it was given. */
function totalStepsOf({ totalSteps, epochs, stepsPerEpoch }: OneCycleLROptions): number {
  if (totalSteps !== undefined) return checkedCount('totalSteps', totalSteps);
  if (epochs === undefined || stepsPerEpoch === undefined)
    throw badOption('OneCycleLR: totalSteps', 'a number of steps, or epochs and stepsPerEpoch', 'none');
  return checkedCount('totalSteps', epochs * stepsPerEpoch);
}

function phasesOf(options: Completed, group: number): Phase[] {
  const { totalSteps, pctStart, divFactor, finalDivFactor, threePhase } = options;
  const maxLr = ofGroup(options.maxLr, group);
  const first = maxLr / divFactor;
  const last = first / finalDivFactor;
  const low = ofGroup(options.baseMomentum, group);
  const high = ofGroup(options.maxMomentum, group);
  const top = pctStart * totalSteps - 1;
  const up: Phase = { end: top, lr: [first, maxLr], momentum: [high, low] };
  if (!threePhase) return [up, { end: totalSteps - 1, lr: [maxLr, last], momentum: [low, high] }];
  return [
    up,
    { end: 2 * pctStart * totalSteps - 2, lr: [maxLr, first], momentum: [low, high] },
    { end: totalSteps - 1, lr: [first, last], momentum: [high, high] },
  ];
}

/**
 * Schedules one cycle of `totalSteps` steps, of which the last has the last rate. Throws if step() is called more
 * often.
 */
export class OneCycleLR extends LrSchedule {
  readonly #options: Completed;
  readonly #between: typeof cosineBetween;

  constructor(optimizer: AnyOptimizer, options: OneCycleLROptions) {
    super(optimizer);
    checkRequiredOptions('OneCycleLR', options, oneCycleOptions);
    const { epochs: _, stepsPerEpoch: __, ...others } = options;
    const all = completed<Completed>(
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
      { ...others, totalSteps: totalStepsOf(options) },
    );
    checkValue('OneCycleLR: maxLr', options.maxLr, orList(positive));
    for (const name of ['maxLr', 'baseMomentum', 'maxMomentum'] as const)
      checkPerGroup(`OneCycleLR: ${name}`, all[name], this.groups.length);
    this.#options = withOwnLists(all);
    this.#between =
      all.annealStrategy === 'cos' ? cosineBetween : (from, to, share) => from + (to - from) * share;
    this.start();
  }

  /** Returns the value after `steps` steps, interpolated inside its phase. */
  #at(steps: number, what: 'lr' | 'momentum', group: number): number {
    const phases = phasesOf(this.#options, group);
    // After `totalSteps` steps, PyTorch follows the curve of the last phase one step beyond its end.
    const at = phases.findIndex((phase, i) => steps <= phase.end || i === phases.length - 1);
    const { end, [what]: ends } = phases[at]!;
    const start = at === 0 ? 0 : phases[at - 1]!.end;
    return this.#between(ends[0], ends[1], end > start ? (steps - start) / (end - start) : 1);
  }

  protected lrAt(steps: number, _initialLr: number, group: number): number {
    return this.#at(steps, 'lr', group);
  }

  override setAt(steps: number): void {
    checkSteps(steps);
    if (steps > this.#options.totalSteps) throw cycleEnded(this.#options.totalSteps, steps);
    super.setAt(steps);
    if (!this.#options.cycleMomentum) return;
    for (const [i, group] of this.groups.entries())
      setMomentum('OneCycleLR', group, this.#at(steps, 'momentum', i));
  }
}
