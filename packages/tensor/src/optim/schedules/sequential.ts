// One schedule after the other.
import { badOption } from '../../errors.ts';
import { type AnyOptimizer, Schedule } from './schedule.ts';

export interface SequentialLROptions {
  readonly schedules: readonly Schedule[];
  /** The step at which each schedule but the first begins, from its own step 0. */
  readonly milestones: readonly number[];
}

/** Only this schedule is stepped, not its parts. */
export class SequentialLR extends Schedule {
  readonly #schedules: readonly Schedule[];
  readonly #milestones: readonly number[];

  constructor(optimizer: AnyOptimizer, { schedules, milestones }: SequentialLROptions) {
    super(optimizer);
    const isRising = milestones.every((at, i) => at > (milestones[i - 1] ?? 0));
    if (schedules.length !== milestones.length + 1 || !isRising) {
      throw badOption('SequentialLR: milestones', `${schedules.length - 1} rising steps`, milestones);
    }
    this.#schedules = [...schedules];
    this.#milestones = [0, ...milestones];
    this.start();
  }

  setAt(steps: number): void {
    const at = this.#milestones.findLastIndex((milestone) => milestone <= steps);
    this.#schedules[at]!.setAt(steps - this.#milestones[at]!);
  }
}
