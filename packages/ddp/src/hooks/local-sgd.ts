// Post-local SGD (Lin, Stich, Patel, Jaggi, 2020): after some steps, gradients are averaged only within a
// subgroup or not at all, and the parameters are averaged over all ranks periodically.
import type { Group } from '@ringwise/collectives';
import { checkGroup, checkInteger, checkOptions, fromPyTorch } from '../check.ts';
import { averageGradients } from '../reducer/average.ts';
import { type CommHook, plainHook } from '../reducer/hook.ts';
import { carrier } from '../reducer/memory.ts';
import { type GradParam, type GradParamSource, paramsOf } from '../wrapper/grad-param.ts';

/** Options of postLocalSGDHook(). */
export interface PostLocalSGDOptions {
  /** Number of backwards at the start whose gradients are averaged over all ranks. */
  readonly startStep: number;
  /**
   * Ranks that average gradients with each other afterwards, such as the ranks of a host. Default null: no averaging.
   */
  readonly subgroup?: Group | null;
}

/** Returns the hook. Use it together with a PeriodicAverager, and for one model only. */
export function postLocalSGDHook(options: PostLocalSGDOptions): CommHook {
  checkOptions('postLocalSGDHook', options, {
    known: ['startStep', 'subgroup'],
    renamed: fromPyTorch({ start_localSGD_iter: 'startStep', process_group: 'subgroup' }),
  });
  const { startStep, subgroup = null } = options ?? {};
  checkInteger('postLocalSGDHook: startStep', startStep, 0);
  if (subgroup !== null) checkGroup('postLocalSGDHook', subgroup);
  let step = 0;
  const postLocalSGD: CommHook = function* postLocalSGD(bucket, group) {
    const isLocal = step >= startStep;
    if (bucket.isLast) step++;
    if (!isLocal) yield* plainHook(bucket, group);
    else if (subgroup !== null) yield* plainHook(bucket, subgroup);
  };
  return Object.assign(postLocalSGD, { leavesRanksApart: true });
}

/** Options of PeriodicAverager. */
export interface PeriodicAveragerOptions {
  /** Number of steps from one average to the next. */
  readonly period: number;
  /** Number of steps at the start without an average. Default 0. */
  readonly warmupSteps?: number;
}

/**
 * Averages a model's parameters over all ranks periodically: in the first step after the warm-up, and then in
 * every `period`-th step.
 */
export class PeriodicAverager {
  /** Number of calls of afterStep() so far. Save and restore it with the model. */
  step = 0;
  readonly #params: readonly Pick<GradParam, 'value'>[];
  readonly #group: Group;
  readonly #period: number;
  readonly #warmupSteps: number;

  constructor(
    params: GradParamSource | Iterable<Pick<GradParam, 'value'>>,
    group: Group,
    options: PeriodicAveragerOptions,
  ) {
    checkGroup('PeriodicAverager', group);
    checkOptions('PeriodicAverager', options, { known: ['period', 'warmupSteps'] });
    const { period, warmupSteps = 0 } = options ?? {};
    checkInteger('PeriodicAverager: period', period, 1);
    checkInteger('PeriodicAverager: warmupSteps', warmupSteps, 0);
    this.#params = paramsOf<Pick<GradParam, 'value'>>(params, 'PeriodicAverager');
    this.#group = group;
    this.#period = period;
    this.#warmupSteps = warmupSteps;
  }

  /**
   * Averages the parameters in every `period`-th step after the warm-up. Call it after every optimizer step. Collective
   * in the steps that average. Resolves with true if it averaged.
   */
  async afterStep(): Promise<boolean> {
    const step = this.step++ - this.#warmupSteps;
    if (step < 0 || step % this.#period !== 0) return false;
    await averageGradients(
      this.#params.map(({ value }) => carrier(value)),
      this.#group,
    );
    return true;
  }
}
