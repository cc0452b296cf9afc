// Post-local SGD (Lin, Stich, Patel, Jaggi, 2020): after some steps gradients are averaged within a subgroup only, or not
// at all, and now and then the parameters over all ranks.
import type { Group } from '@ringwise/collectives';
import { checkGroup, checkInteger, checkOptions, fromPyTorch } from '../check.ts';
import { averageGradients } from '../reducer/average.ts';
import { type CommHook, plainHook } from '../reducer/hook.ts';
import { carrier } from '../reducer/memory.ts';
import { type GradParam, type GradParamSource, paramsOf } from '../wrapper/grad-param.ts';

export interface PostLocalSGDOptions {
  /** Averaged backwards over all ranks at first. */
  readonly startStep: number;
  /** Ranks that average among themselves later, such as those of a host. Default null: every rank on its own. */
  readonly subgroup?: Group | null;
}

/** The hook; with a PeriodicAverager. Use one for one model. */
export function postLocalSGDHook(options: PostLocalSGDOptions): CommHook {
  checkOptions('postLocalSGDHook', options, {
    known: ['startStep', 'subgroup'],
    renamed: fromPyTorch({ start_localSGD_iter: 'startStep', process_group: 'subgroup' }),
  });
  const { startStep, subgroup = null } = options ?? {};
  checkInteger('postLocalSGDHook: startStep', startStep, 0);
  if (subgroup !== null) checkGroup('postLocalSGDHook', subgroup);
  let step = 0;
  return function* postLocalSGD(bucket, group) {
    const isLocal = step >= startStep;
    if (bucket.isLast) step++;
    if (!isLocal) yield* plainHook(bucket, group);
    else if (subgroup !== null) yield* plainHook(bucket, subgroup);
  };
}

export interface PeriodicAveragerOptions {
  /** Steps from one average to the next. */
  readonly period: number;
  /** Steps without an average at first. Default 0. */
  readonly warmupSteps?: number;
}

/** Averages a model's parameters over all ranks now and then. */
export class PeriodicAverager {
  /** Calls of afterStep() so far. Save and restore it with the model. */
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

  /** After every optimizer step. Collective when it is time; tells whether it was. */
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
