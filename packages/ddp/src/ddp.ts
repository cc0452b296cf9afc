// One DDP step, from the outside: ddp() makes all ranks start from the same parameters and hooks into the autograd;
// from then on every backward ends with averaged gradients, so every rank's optimizer takes the same step.
import type { Group } from '@ringwise/collectives';
import { differingTexts, firstDisagreement } from './compare.ts';
import { closed, duplicateName, noForward, noParams, paramsDiffer, plansDiffer } from './errors.ts';
import { type GradParam, type GradParamSource, paramsOf } from './grad-param.ts';
import { carrier } from './memory.ts';
import { type DdpOptions, optionsOf } from './options.ts';
import { type BucketPlan, type PlanLimits, planBuckets, planHash } from './plan.ts';
import { Reducer } from './reducer.ts';

type Forward<M> = M extends { readonly forward: infer F extends (...args: never[]) => unknown } ? F : never;

/** Made by ddp(). `M` is what was passed to it. */
export class DistributedDataParallel<M = unknown> {
  /** What was passed to ddp(): the model itself, for saving and evaluation. */
  readonly module: M;
  readonly group: Group;
  /** The buckets, in the order in which they are averaged. */
  readonly plan: readonly BucketPlan[];
  /** Calls the model's forward. Throws ERR_DDP_UNFINISHED if finish() was forgotten. */
  readonly forward: Forward<M>;
  readonly #reducer: Reducer;
  #unsubscribe: (() => void)[] = [];
  #isClosed = false;

  /** Internal: allocates buckets and subscribes. Use ddp(). */
  constructor(
    module: M,
    params: readonly GradParam[],
    plan: readonly BucketPlan[],
    options: Required<DdpOptions>,
  ) {
    const { group, unused } = options;
    const reducer = new Reducer(params, plan, group, unused);
    this.module = module;
    this.group = group;
    this.plan = plan;
    this.#reducer = reducer;
    this.forward = ((...args: unknown[]) => this.#forward(args)) as unknown as Forward<M>;
    this.#unsubscribe = params.map((param, index) => param.onGradReady(() => reducer.ready(index)));
    const end = params.find((param) => param.onBackwardEnd)?.onBackwardEnd?.(() => reducer.backwardEnded());
    if (end) this.#unsubscribe.push(end);
  }

  /**
   * Runs `fn`, in which gradients accumulate on this rank and nothing is sent; the next backward after it averages
   * what has accumulated. Put the backward inside. Returns what `fn` returns; waits for it if that is a promise.
   */
  noSync<T>(fn: () => T): T {
    return this.#reducer.noSync(fn);
  }

  /**
   * Waits until all gradients of the last backward are averaged. Needed after every backward if the autograd does not
   * tell when backward ends or the group may not block; otherwise it returns at once.
   */
  finish(): Promise<void> {
    return this.#reducer.finish();
  }

  /** Stops averaging. Gradients stay where they are. Not collective. Idempotent. */
  close(): void {
    this.#isClosed = true;
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #forward(args: unknown[]): unknown {
    if (this.#isClosed) throw closed('forward');
    this.#reducer.checkIdle('forward');
    const module = this.module as { forward?: (...args: unknown[]) => unknown };
    if (typeof module.forward !== 'function') throw noForward();
    return module.forward(...args);
  }
}

/**
 * Makes a model data-parallel: `source` is a model that offers its parameters (`Symbol.for('ringwise.gradParams')`), or
 * the parameters themselves. Collective; does not block. Checks that all ranks have the same parameters and options,
 * copies rank 0's values to all, and averages gradients in every backward from then on.
 */
export async function ddp<M extends GradParamSource | Iterable<GradParam>>(
  source: M,
  options: DdpOptions,
): Promise<DistributedDataParallel<M>> {
  const checked = optionsOf(options);
  const { group } = checked;
  const params = paramsOf(source);
  const plan = await agreeOnPlan(params, checked, group);
  const works = params.map(({ value }) => group.broadcast(carrier(value), { root: 0 }));
  for (const work of works) await work;
  return new DistributedDataParallel(source, params, plan, checked);
}

/** Throws on all ranks or on none. */
async function agreeOnPlan(
  params: readonly GradParam[],
  limits: PlanLimits,
  group: Group,
): Promise<BucketPlan[]> {
  const entries = params.map(({ name, value }) => [name, `[${value.dtype} × ${value.count}]`] as const);
  const difference = await firstDisagreement(group, entries);
  if (difference) throw paramsDiffer(difference.index, difference.name, difference.values);
  if (params.length === 0) throw noParams();
  const names = params.map(({ name }) => name);
  const double = names.find((name, index) => names.indexOf(name) !== index);
  if (double !== undefined) throw duplicateName(double);

  const plan = planBuckets(
    params.map(({ value }) => value),
    limits,
  );
  const { bucketBytes, firstBucketBytes } = limits;
  const layout = `bucketBytes ${bucketBytes}, firstBucketBytes ${firstBucketBytes} (layout ${planHash(plan).slice(0, 16)})`;
  const layouts = await differingTexts(group, layout);
  if (layouts) throw plansDiffer(layouts);
  return plan;
}
