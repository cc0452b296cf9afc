// One DDP step, from the outside: ddp() makes all ranks start from the same parameters and hooks into the autograd;
// from then on every backward ends with averaged gradients, so every rank's optimizer takes the same step.
import type { Group } from '@ringwise/collectives';
import { differingTexts, firstDisagreement } from './compare.ts';
import { closed, duplicateName, noForward, noParams, paramsDiffer, plansDiffer } from './errors.ts';
import {
  type GradParam,
  type GradParamSource,
  paramsOf,
  type StateBuffer,
  stateBuffersOf,
} from './grad-param.ts';
import { type JoinBody, join } from './join.ts';
import { broadcasts, carrier } from './memory.ts';
import { type DdpOptions, optionsOf } from './options.ts';
import { type BucketPlan, planBuckets, planHash } from './plan.ts';
import { Reducer } from './reducer.ts';
import { type StepStatistics, statisticsOf } from './statistics.ts';
import type { StepTimes } from './timeline.ts';
import { type DdpTrace, gatherTrace } from './trace.ts';

type Forward<M> = M extends { readonly forward: infer F extends (...args: never[]) => unknown } ? F : never;

/** A loss that can be multiplied, for averages with weights. */
export interface WeightableLoss {
  readonly mul: (weight: number) => { readonly backward: () => void };
}

/** What ddp() has found in a model. */
interface Parts {
  readonly params: readonly GradParam[];
  readonly buffers: readonly StateBuffer[];
}

/** Made by ddp(). `M` is what was passed to it. */
export class DistributedDataParallel<M = unknown> {
  /** What was passed to ddp(): the model itself, for saving and evaluation. */
  readonly module: M;
  readonly group: Group;
  /** Calls the model's forward. Throws ERR_DDP_UNFINISHED if finish() was forgotten. */
  readonly forward: Forward<M>;
  readonly #parts: Parts;
  readonly #reducer: Reducer;
  #unsubscribe: (() => void)[] = [];
  #isClosed = false;

  /** Internal: allocates buckets and subscribes. Use ddp(). */
  constructor(module: M, parts: Parts, plan: readonly BucketPlan[], options: Required<DdpOptions>) {
    const { group, rebuild, broadcastBuffers } = options;
    const { params } = parts;
    const reducer = new Reducer(params, plan, group, {
      ...options,
      buffers: broadcastBuffers ? parts.buffers : [],
      rebuild: rebuild ? options : null,
    });
    this.module = module;
    this.group = group;
    this.#parts = parts;
    this.#reducer = reducer;
    this.forward = ((...args: unknown[]) => this.#forward(args)) as unknown as Forward<M>;
    this.#unsubscribe = params.map((param, index) => param.onGradReady(() => reducer.ready(index)));
    const end = params.find((param) => param.onBackwardEnd)?.onBackwardEnd?.(() => reducer.backwardEnded());
    if (end) this.#unsubscribe.push(end);
  }

  /** The buckets, in the order in which they are averaged. */
  get plan(): readonly BucketPlan[] {
    return this.#reducer.plan;
  }

  /**
   * Multiplies `loss` by `weight` and runs backward. Gradients become the average over all ranks with these weights:
   * Σ weight·gradient / Σ weight. For batches or numbers of tokens that differ. Every rank calls it in a step, or none.
   */
  backward(loss: WeightableLoss, { weight }: { readonly weight: number }): void {
    this.#reducer.addWeight(weight);
    loss.mul(weight).backward();
  }

  /** For losses without `mul`: the loss of the next backward is multiplied by `weight` already; see backward(). */
  addWeight(weight: number): void {
    this.#reducer.addWeight(weight);
  }

  /**
   * Runs `fn`, in which gradients accumulate on this rank and nothing is sent; the next backward after it averages
   * what has accumulated. Put the backward inside. Returns what `fn` returns; waits for it if that is a promise.
   */
  noSync<T>(fn: () => T): T {
    return this.#reducer.noSync(fn);
  }

  /**
   * Runs a training loop that may have more steps on some ranks than on others. Gradients are averages over the ranks that
   * still have data; at the end all have the parameters of those that went on longest. Collective: every rank calls it,
   * and inside it makes no calls on the group that the others would not answer. Returns what `loop` returns.
   */
  join<T>(loop: JoinBody<T>): Promise<T> {
    return join(this.#reducer, this.group, [...this.#parts.params, ...this.#parts.buffers], loop);
  }

  /**
   * Waits until all gradients of the last backward are averaged. Needed after every backward if the autograd does not
   * tell when backward ends or the group may not block; otherwise it returns at once.
   */
  finish(): Promise<void> {
    return this.#reducer.finish();
  }

  /** The last averaged backward as this rank saw it, or null. Not collective; worked out when it is asked for. */
  statistics(): StepStatistics | null {
    const { last } = this.#reducer.timeline;
    return last && this.#statisticsOf(last);
  }

  /**
   * The last 64 averaged backwards of all ranks as one Chrome trace (JSON.stringify it; ui.perfetto.dev opens it), on one
   * clock. Collective; rank 0 gets it, the others null.
   */
  trace(): Promise<DdpTrace | null> {
    const steps = this.#reducer.timeline.steps.map((times) => {
      return { beginMs: times.beginMs, statistics: this.#statisticsOf(times) };
    });
    return gatherTrace(steps, this.group);
  }

  /**
   * Stops averaging. Gradients stay where they are. Not collective, but where NCCL works on the buckets all ranks do so
   * between the same collectives. Idempotent.
   */
  close(): void {
    this.#isClosed = true;
    this.#reducer.close();
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #statisticsOf(times: StepTimes): StepStatistics {
    const names = this.#parts.params.map(({ name }) => name);
    return statisticsOf(times, times.plan, names, this.group);
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
 * Makes a model data-parallel: `source` is a model that offers its parameters (`Symbol.for('ringwise.gradParams')`) and
 * state buffers (`Symbol.for('ringwise.buffers')`), or the parameters themselves. Collective; does not block. Checks
 * that all ranks have the same ones and the same options, copies rank 0's values to all, and averages gradients in every
 * backward from then on. Parameters that are frozen or unfrozen later need another ddp(), after close().
 */
export async function ddp<M extends GradParamSource | Iterable<GradParam>>(
  source: M,
  options: DdpOptions,
): Promise<DistributedDataParallel<M>> {
  const checked = optionsOf(options);
  const { group } = checked;
  const parts = { params: paramsOf(source), buffers: stateBuffersOf(source) };
  const plan = await agreeOnPlan(parts, checked);
  for (const { value } of [...parts.params, ...parts.buffers]) {
    for (const work of broadcasts([carrier(value)], group, 0)) await work;
  }
  return new DistributedDataParallel(source, parts, plan, checked);
}

/** Throws on all ranks or on none. */
async function agreeOnPlan({ params, buffers }: Parts, options: Required<DdpOptions>): Promise<BucketPlan[]> {
  const { group } = options;
  const entries = [...params, ...buffers].map(
    ({ name, value, shape = [value.count] }: StateBuffer & Partial<GradParam>) =>
      [name, `[${value.dtype} × ${shape.join(' × ')}]`] as const,
  );
  const difference = await firstDisagreement(group, entries);
  if (difference) throw paramsDiffer(difference.index, difference.name, difference.values);
  if (params.length === 0) throw noParams();
  const names = entries.map(([name]) => name);
  const double = names.find((name, index) => names.indexOf(name) !== index);
  if (double !== undefined) throw duplicateName(double);

  const plan = planBuckets(
    params.map(({ value }) => value),
    options,
  );
  const layouts = await differingTexts(group, settingsText(options, plan));
  if (layouts) throw plansDiffer(layouts);
  return plan;
}

/** All that ranks must agree on besides parameters. */
function settingsText(options: Required<DdpOptions>, plan: readonly BucketPlan[]): string {
  const { bucketBytes, firstBucketBytes, unused, rebuild, staticGraph, broadcastBuffers, hook } = options;
  const flags = Object.entries({ rebuild, staticGraph, broadcastBuffers }).map(
    ([name, on]) => `${name} ${on}`,
  );
  const limits = `bucketBytes ${bucketBytes}, firstBucketBytes ${firstBucketBytes}`;
  const rest = [`unused ${unused}`, ...flags, `hook ${hook.name || 'anonymous'}`].join(', ');
  return `${limits}, ${rest} (layout ${planHash(plan).slice(0, 16)})`;
}
