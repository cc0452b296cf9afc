// Data-parallel training: ddp() makes all ranks start from the same parameters and registers hooks with the
// autograd. Every later backward ends with averaged gradients, so that every rank's optimizer takes the same
// step.
import { type Group, refusingMembers } from '@ringwise/collectives';
import { checkGroup, checkOptions } from '../check.ts';
import { badOptions, closed, joinsBatchNorm, noForward, notALoss, trainedLater } from '../errors.ts';
import { refuseForeign } from '../foreign-members.ts';
import { broadcasts, carrier } from '../reducer/memory.ts';
import type { BucketPlan } from '../reducer/plan.ts';
import { Reducer } from '../reducer/reducer.ts';
import { runAwaiting } from '../reducer/works.ts';
import { type StepStatistics, statisticsOf } from '../statistics/statistics.ts';
import type { StepTimes } from '../statistics/timeline.ts';
import { type DdpTrace, gatherTrace } from '../statistics/trace.ts';
import { convertSyncBatchNorm, hasSyncBatchNorm, isConverted, type ModuleTree } from '../sync-batch-norm.ts';
import { agreeAgain, agreeOnPlan, type Parts, partsOf } from './agreement.ts';
import { type ChainedMethodOf, callOn, type MethodOf } from './delegate.ts';
import {
  buffersSymbol,
  type FrozenParam,
  frozenParamsOf,
  frozenParamsSymbol,
  type GradParam,
  type GradParamSource,
  gradParamsSymbol,
  paramsOf,
  type StateBuffer,
  stateBuffersOf,
} from './grad-param.ts';
import { type JoinBody, join } from './join.ts';
import { type CheckedOptions, type DdpOptions, optionsOf } from './options.ts';
import { Claim, isWrapped } from './wrapped.ts';

/** A loss that can be multiplied, for averages with weights. */
export interface WeightableLoss {
  /** Returns the loss times `weight`, whose backward() computes gradients. */
  readonly mul: (weight: number) => { readonly backward: () => void };
}

type Source = GradParamSource | Iterable<GradParam>;

/** Number of ddp() calls on each group. The calls are collective, so every rank has the same numbers. */
const models = new WeakMap<Group, number>();

function countModel(group: Group): number {
  const number = (models.get(group) ?? 0) + 1;
  models.set(group, number);
  return number;
}

/** The wrapper that ddp() returns. `M` is the type of the object that was passed to ddp(). */
export class DistributedDataParallel<M = unknown> implements GradParamSource {
  /** The object that was passed to ddp(): the model itself, for saving and evaluation. */
  readonly module: M;
  /** Calls the model's forward. Throws ERR_DDP_UNFINISHED if the last backward is not averaged yet. */
  readonly forward: MethodOf<M, 'forward'>;
  readonly #parts: Parts;
  readonly #reducer: Reducer;
  readonly #claim: Claim;
  #group: Group;
  readonly #options: CheckedOptions;
  #unsubscribe: (() => void)[] = [];
  #isClosed = false;

  /** Allocates buckets and subscribes to gradients. Use ddp(). @internal */
  constructor(
    module: M,
    parts: Parts,
    claim: Claim,
    plan: readonly BucketPlan[],
    options: CheckedOptions,
    model: string,
  ) {
    const { group, rebuild, broadcastBuffers, bucketBytes, firstBucketBytes } = options;
    const { unused, staticGraph, hook } = options;
    const { params, frozen, buffers } = parts;
    const reducer = new Reducer(params, plan, group, {
      ...{ unused, staticGraph, hook, model },
      buffers: broadcastBuffers ? buffers : [],
      rebuild: rebuild ? { bucketBytes, firstBucketBytes } : null,
    });
    this.module = module;
    this.#group = group;
    this.#options = options;
    this.#parts = parts;
    this.#reducer = reducer;
    this.#claim = claim;
    this.forward = ((...args: unknown[]) => this.#forward(args)) as unknown as MethodOf<M, 'forward'>;
    this.#unsubscribe = params.map((param, index) =>
      param.onGradReady((backward) => reducer.ready(index, backward)),
    );
    const end = params
      .find((param) => param.onBackwardEnd)
      ?.onBackwardEnd?.((backward) => reducer.backwardEnded(backward));
    if (end) this.#unsubscribe.push(end);
    for (const param of frozen) {
      const stop = param.onGradReady?.(() => {
        // If another wrapper averages the parameter, it is trained there.
        if (!isWrapped(param)) reducer.refuse(trainedLater(param.name, this.#group.rank));
      });
      if (stop) this.#unsubscribe.push(stop);
    }
  }

  /** The group over which gradients are averaged. */
  get group(): Group {
    return this.#group;
  }

  /** The buckets, in the order in which they are averaged. */
  get plan(): readonly BucketPlan[] {
    return this.#reducer.plan;
  }

  // The module's own methods. Each throws ERR_DDP_INVALID if the module has no method of that name.

  /** Calls the module's parameters(). */
  get parameters(): MethodOf<M, 'parameters'> {
    return this.#own('parameters');
  }

  /** Calls the module's namedParameters(), which returns the module's own names. */
  get namedParameters(): MethodOf<M, 'namedParameters'> {
    return this.#own('namedParameters');
  }

  /** Calls the module's stateDict(), which has the module's own names without a prefix. Not collective. */
  get stateDict(): MethodOf<M, 'stateDict'> {
    return this.#own('stateDict');
  }

  /**
   * Calls the module's loadStateDict(). Not collective: nothing is sent, so all ranks must load the same
   * values; otherwise their parameters differ from then on (assertInSync() detects that). Before ddp() it is
   * enough if rank 0 loads.
   */
  get loadStateDict(): MethodOf<M, 'loadStateDict'> {
    return this.#own('loadStateDict');
  }

  /** Calls the module's zeroGrad(). */
  get zeroGrad(): MethodOf<M, 'zeroGrad'> {
    return this.#own('zeroGrad');
  }

  /** Calls the module's train(). Returns the wrapper. */
  get train(): ChainedMethodOf<M, 'train', this> {
    return this.#chained('train');
  }

  /** Calls the module's eval(). Returns the wrapper. */
  get eval(): ChainedMethodOf<M, 'eval', this> {
    return this.#chained('eval');
  }

  /**
   * Multiplies `loss` by `weight` and runs backward. Gradients become the weighted average over all ranks, Σ
   * weight·gradient / Σ weight, for batches or numbers of tokens that differ. In a step, either all ranks call it or
   * none. Gradients of an earlier average must have been dropped, or they are divided by the weights, too. `total` as
   * in addWeight().
   */
  backward(loss: WeightableLoss, options: { readonly weight: number; readonly total?: number }): void {
    checkOptions('backward', options, { known: ['weight', 'total'] });
    if (typeof loss?.mul !== 'function') throw notALoss();
    const { weight, total } = options ?? {};
    this.#reducer.withWeight(weight, total, () => loss.mul(weight).backward());
  }

  /**
   * Declares that the next backward's loss is already multiplied by `weight`, for losses without `mul`; see backward().
   *
   * `total` is Σ weight over all ranks and backwards of the step, if the program knows it: either all ranks pass it or
   * none. An average then costs the same as one without weights. Totals that differ between ranks fail with
   * ERR_COLL_MISMATCH on all of them. The first step in a group also compares the total with the sum of the weights
   * (ERR_DDP_INVALID); later steps do not. Throws ERR_DDP_INVALID inside join().
   */
  addWeight(weight: number, options: { readonly total?: number } = {}): void {
    checkOptions('addWeight', options, { known: ['total'] });
    this.#reducer.addWeight(weight, options.total);
  }

  /**
   * Runs `fn`, during which gradients accumulate on this rank and nothing is sent. The next backward after it
   * averages the accumulated gradients. Call backward inside `fn`. Returns the result of `fn`. If that is a
   * promise, await it: all backwards of this model count as inside until it settles.
   *
   * @example
   * ```ts
   * model.noSync(() => mseLoss(model.forward(x), y).backward()); // accumulates on this rank
   * mseLoss(model.forward(x), y).backward(); // averages the sum of both
   * optimizer.step();
   * ```
   */
  noSync<T>(fn: () => T): T {
    return this.#reducer.noSync(fn);
  }

  /**
   * Runs a training loop that may have more steps on some ranks than on others. Gradients are averages over the ranks
   * that still have data. At the end all ranks get the parameters and state buffers of the ranks that trained longest.
   * Collective: every rank calls it. Inside `loop`, a rank makes only those calls on the group that all other ranks
   * make too. Resolves with the result of `loop`.
   */
  async join<T>(loop: JoinBody<T>): Promise<T> {
    // A rank without data runs no forward, so it would be missing in the exchanges of the others' batch norms.
    if (hasSyncBatchNorm(this.module as Partial<ModuleTree>)) throw joinsBatchNorm(this.group.rank);
    return await join(this.#reducer, this.group, [...this.#parts.params, ...this.#parts.buffers], loop);
  }

  /**
   * Takes part in the next averaged backward of the other ranks with no data and weight 0. For a rank without samples
   * in a step in which the others call `backward(loss, { weight })` or addWeight(); a rank that has gradients from
   * backwards inside noSync calls average(). Resolves when this rank's gradients
   * hold the same averages as on the other ranks. Collective: in a step, a rank calls either this or backward. `total`
   * as in addWeight(), if the others pass it; then rank 0 must have samples.
   */
  takePartOnce(options: { readonly total?: number } = {}): Promise<void> {
    checkOptions('takePartOnce', options, { known: ['total'] });
    // Without a forward, this rank would be missing in the exchanges of the others' batch norms.
    if (hasSyncBatchNorm(this.module as Partial<ModuleTree>))
      throw joinsBatchNorm(this.group.rank, 'takePartOnce');
    return this.#reducer.takePartOnce(options.total);
  }

  /**
   * Averages the gradients that backwards inside noSync have accumulated, without another backward. Resolves when all
   * gradients are averaged. Collective: for the other ranks it is one averaged backward.
   */
  average(): Promise<void> {
    return this.#reducer.averageAccumulated();
  }

  /** Divides the gradients that backwards inside noSync have accumulated, so that later ones get a larger weight. */
  divideAccumulated(divisor: number): void {
    this.#reducer.divideAccumulated(divisor);
  }

  /** Number of averaged backwards that have ended, over all groups. @internal */
  get averages(): number {
    return this.#reducer.averages;
  }

  /**
   * Averages over `group` from now on: after a failure of the present group, or to continue training with more ranks,
   * fewer, or one. Parameters, bucket layout and options stay as they are, and nothing is broadcast: the caller ensures
   * that all ranks of `group` hold the same values. Gradients, including those of an unfinished backward, become zero,
   * or are dropped in a group of one. Batch norms of convertSyncBatchNorm() exchange over the new group, too. The
   * previous group may have failed or be closed.
   *
   * Collective among the ranks of `group`; does not block. Rejects with ERR_DDP_MISMATCH on all of them if their models
   * or options differ; the model then stays in its present group.
   *
   * @example
   * ```ts
   * const survivors = await group.shrink(); // after an error with code ERR_COLL_PEER_LOST
   * await model.rebind(survivors);
   * ```
   */
  async rebind(group: Group): Promise<void> {
    checkGroup('rebind', group);
    if (this.#isClosed) throw closed('rebind');
    const name = `model ${countModel(group)}`;
    await agreeAgain(this.#parts, { ...this.#options, group }, this.plan);
    const model = this.module as Partial<ModuleTree>;
    if (isConverted(model)) await convertSyncBatchNorm(model, group);
    this.#reducer.rebind(group, name);
    this.#group = group;
  }

  /**
   * Resolves when all gradients of the last backward are averaged. Needed after every backward if the
   * autograd does not report the end of backward or the group cannot block; otherwise it resolves at once.
   */
  finish(): Promise<void> {
    return this.#reducer.finish();
  }

  /**
   * Returns statistics of the last averaged backward on this rank, or null. Not collective. Computed on each
   * call.
   */
  statistics(): StepStatistics | null {
    const { last } = this.#reducer.timeline;
    return last && this.#statisticsOf(last);
  }

  /**
   * Gathers the last 64 averaged backwards of all ranks as one Chrome trace on one clock (JSON.stringify it;
   * ui.perfetto.dev opens it). Collective. Resolves with the trace on rank 0 and null on the other ranks.
   */
  trace(): Promise<DdpTrace | null> {
    const steps = this.#reducer.timeline.steps.map((times) => {
      return { beginMs: times.beginMs, statistics: this.#statisticsOf(times) };
    });
    return gatherTrace(steps, this.group);
  }

  /**
   * Stops averaging; the model can be wrapped again. Gradients keep their memory. Not collective, but if NCCL
   * uses the buckets, all ranks must call it between the same collectives. Idempotent.
   */
  close(): void {
    this.#isClosed = true;
    this.#reducer.close();
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    this.#claim.release();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Returns the module's parameters, so that functions that take a model also take its wrapper. */
  [gradParamsSymbol](): Iterable<GradParam> {
    return paramsOf(this.module as Source);
  }

  [frozenParamsSymbol](): Iterable<FrozenParam> {
    return frozenParamsOf(this.module as Source);
  }

  [buffersSymbol](): Iterable<StateBuffer> {
    return stateBuffersOf(this.module as Source);
  }

  #own<F>(name: string): F {
    return ((...args: unknown[]) => callOn(this.module, name, args)) as F;
  }

  #chained<F>(name: string): F {
    return ((...args: unknown[]) => {
      callOn(this.module, name, args);
      return this;
    }) as F;
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

  static {
    refuseForeign(DistributedDataParallel.prototype, 'model', badOptions, {});
  }
}

const notAwaited = refusingMembers(
  { what: 'model', call: 'ddp()', names: ['forward', 'module'] },
  DistributedDataParallel.prototype,
  badOptions,
);

/**
 * Makes a model data-parallel. `source` is a model that offers its trainable parameters
 * (`Symbol.for('ringwise.gradParams')`), its frozen parameters (`Symbol.for('ringwise.frozenParams')`) and
 * its state buffers (`Symbol.for('ringwise.buffers')`), or a list of the parameters.
 *
 * Collective; does not block. Checks that all ranks have the same parameters, the same frozen ones and the
 * same options; copies rank 0's values to all ranks; and averages gradients in every backward from then on. A
 * parameter can have one wrapper at a time. To freeze or unfreeze parameters permanently later, call close()
 * and ddp() again.
 *
 * @example
 * ```ts
 * const model = await ddp(net, { group });
 * optimizer.zeroGrad();
 * crossEntropy(model.forward(x), y).backward(); // ends when all gradients are averaged
 * optimizer.step();
 * ```
 */
export function ddp<M extends Source>(source: M, options: DdpOptions): Promise<DistributedDataParallel<M>> {
  return notAwaited(wrap(source, options));
}

async function wrap<M extends Source>(source: M, options: DdpOptions): Promise<DistributedDataParallel<M>> {
  const checked = optionsOf(options);
  const { group } = checked;
  const parts = partsOf(source);
  const model = `model ${countModel(group)}`;
  const claim = new Claim(describe(source, group));
  try {
    const plan = await agreeOnPlan(parts, claim, checked);
    for (const { value } of [...parts.params, ...parts.frozen, ...parts.buffers]) {
      await runAwaiting(broadcasts([carrier(value)], group, 0));
    }
    return new DistributedDataParallel(source, parts, claim, plan, checked, model);
  } catch (error) {
    claim.release();
    throw error;
  }
}

function describe(source: object, group: Group): string {
  const name = Array.isArray(source) ? 'a list of parameters' : source.constructor?.name || 'a model';
  return `the ddp() of ${name} in group "${group.name}"`;
}
