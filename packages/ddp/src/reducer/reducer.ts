// Collects gradients, which become ready one by one, into buckets that are averaged in index order.
//
//   idle ── first ready() ──▶ backward ── all ready, or end of backward ──▶ reducing ── all averaged ──▶ idle
//
// A full bucket is launched from inside backward, which continues meanwhile (launchesAtEnd() tells when not). Every
// rank starts the same operations in the same order: the participation exchange (with weights or join()), the
// buckets by index even if a later one is full first, and at the end of backward the exchange of used
// parameters, the rest of the hooks, state buffers, the new layout. A group of one has no buckets, because its
// gradients are averages already; it reports mistakes as any other group does.
import { captureNow, type Group } from '@ringwise/collectives';
import { checkBoolean, checkFunction, checkOneOf, checkOptions, checkString } from '../check.ts';
import {
  accumulatedWithoutData,
  cannotDivide,
  capturedAverage,
  closed,
  frozenLater,
  gradMissing,
  joinsTwice,
  notCapturable,
  readyTwice,
  rootWithoutData,
  unfinished,
  unusedParams,
} from '../errors.ts';
import { Timeline } from '../statistics/timeline.ts';
import { hasExchanges } from '../sync-batch-norm.ts';
import type { StateBuffer } from '../wrapper/grad-param.ts';
import { type BucketParam, leaveBuckets, zeroMissing } from './bucket.ts';
import { BucketList } from './bucket-list.ts';
import { type CommHook, checkHook, plainHook } from './hook.ts';
import { HookCounts } from './hook-counts.ts';
import { apart, broadcasts, carrier } from './memory.ts';
import { Pauses } from './pauses.ts';
import { type BucketPlan, type PlanLimits, type PlanParam, planBuckets } from './plan.ts';
import { divide } from './scale.ts';
import { StepWeights } from './step-weights.ts';
import { afterTurn, finishing, warnUnfinished } from './unfinished.ts';
import { Usage } from './usage.ts';
import { Participation, type Weighting } from './weighting.ts';
import { runAwaiting, runBlocking, type Works } from './works.ts';

/** Policy for parameters that got no gradient in a backward; see DdpOptions. */
export type UnusedPolicy = 'error' | 'zero' | 'skip';

/** Options of Reducer. */
export interface ReducerOptions {
  /** Default 'error'. */
  readonly unused?: UnusedPolicy;
  /** Default false. */
  readonly staticGraph?: boolean;
  /** Communication hook. Default: plain averaging. */
  readonly hook?: CommHook;
  /** Limits of the layout after the first backward. Default: the layout does not change. */
  readonly rebuild?: PlanLimits | null;
  /** Name of the model for the labels of its operations, the same on all ranks. Default 'a model'. */
  readonly model?: string;
  /** State buffers to broadcast in every averaged backward, from the lowest rank that has data. */
  readonly buffers?: readonly Pick<StateBuffer, 'value'>[];
}

const optionNames = ['unused', 'staticGraph', 'hook', 'rebuild', 'model', 'buffers'] as const;

/**
 * Averages gradients in buckets while an engine computes them. ddp() uses it; an engine with hooks of its
 * own may drive it directly.
 */
export class Reducer {
  /** Records when gradients and buckets were ready, for statistics. */
  readonly timeline = new Timeline();
  #group: Group;
  readonly #params: readonly BucketParam[];
  readonly #unused: UnusedPolicy;
  readonly #hook: CommHook;
  readonly #buckets: BucketList;
  readonly #weights = new StepWeights();
  #model: string;
  /** The state buffers, in lists in which no two share memory. */
  readonly #buffers: readonly (readonly Pick<StateBuffer, 'value'>[])[];
  #usage: Usage;
  readonly #hookCounts: HookCounts | null;
  #rebuildLimits: PlanLimits | null;
  #phase: 'idle' | 'backward' | 'reducing' = 'idle';
  /** The running backward; undefined if the engine does not identify it. */
  #backward: object | undefined;
  #isClosed = false;
  /** Whether finish() has been called for the running backward. */
  #isFinishing = false;
  /** The wait for the averages of the running backward, which all calls share; null while no call waits. */
  #settling: Promise<void> | null = null;
  #hasWarned = false;
  readonly #pauses = new Pauses();
  #averages = 0;
  #weighting: Weighting | null = null;
  /** The lowest rank that had data in the last reduction with weights or join(). */
  #lastLive = 0;

  /**
   * Allocates the buckets and binds gradients to them. `plan` is planBuckets(params), the same on all ranks.
   */
  constructor(
    params: readonly BucketParam[],
    plan: readonly BucketPlan[],
    group: Group,
    options: ReducerOptions = {},
  ) {
    checkOptions('Reducer', options, { known: optionNames });
    const { unused = 'error', staticGraph = false, hook = plainHook, rebuild = null, buffers = [] } = options;
    const { model = 'a model' } = options;
    checkOneOf('Reducer: unused', unused, ['error', 'zero', 'skip']);
    checkBoolean('Reducer: staticGraph', staticGraph);
    checkHook(hook);
    checkString('Reducer: model', model);
    this.#model = model;
    this.#group = group;
    this.#params = params;
    this.#unused = unused;
    this.#hook = hook;
    this.#buffers = apart(buffers);
    this.#rebuildLimits = rebuild;
    this.#usage = new Usage(params.length, group);
    this.#hookCounts = staticGraph ? new HookCounts(params, group.rank) : null;
    this.#buckets = new BucketList(params, hook);
    this.#build(plan);
  }

  /** The buckets, in the order in which they are averaged. */
  get plan(): readonly BucketPlan[] {
    return this.#buckets.plan;
  }

  /**
   * Notes that the gradient of parameter `index` is final, and launches full buckets. Does not block.
   * `backward` identifies the backward that made the gradient. Aborts the group and throws if an earlier
   * backward is not averaged yet, for example because it threw.
   */
  ready(index: number, backward?: object): void {
    this.#checkOpen('backward');
    this.#usage.mark(index);
    this.#pauses.checkAwaited('backward', this.#group.rank);
    if (this.#pauses.any) return;
    this.#orFail(() => {
      const isOther = this.#phase === 'backward' && this.#isOther(backward);
      if (this.#phase === 'reducing' || isOther) throw unfinished('backward', this.#group.rank);
      if (this.#phase === 'idle') {
        this.#begin(backward);
        this.#beginCounting();
      }
      if (this.#hookCounts && !this.#hookCounts.isLast(index)) return;
      if (this.#buckets.isReady(index)) throw readyTwice(this.#params[index]!.name, this.#group.rank);
      this.#collect(index);
      if (this.#launchesAtEnd()) return;
      if (this.#buckets.areAllReady) this.#phase = 'reducing';
      this.#launchFull();
    });
  }

  /**
   * Ends a backward: launches the remaining buckets, and blocks until all are averaged if the group can block.
   * Otherwise finish() must be awaited, and a warning says so if it is not called. Does nothing if no gradient became
   * ready, or if `backward` is not the running one.
   */
  backwardEnded(backward?: object): void {
    if (this.#phase === 'idle' || this.#isOther(backward)) return;
    this.#endBackward();
    if (!this.#group.supports.sync) {
      // The program goes on in this turn; if it awaits finish(), it has called it by the next one.
      afterTurn(this.#group, () => {
        if (this.#phase !== 'reducing' || this.#isFinishing || this.#hasWarned) return;
        this.#hasWarned = true;
        warnUnfinished(this.#group.backend);
      });
      return;
    }
    this.#orFail(() => runBlocking(this.#settle()));
    this.#reset();
  }

  /**
   * Launches the remaining buckets and resolves when all are averaged. Resolves at once if no backward is
   * running.
   */
  async finish(): Promise<void> {
    this.#pauses.checkAwaited('finish', this.#group.rank);
    if (this.#phase === 'idle') return;
    this.#isFinishing = true;
    this.#endBackward();
    await finishing(this.#group, this.#settled());
  }

  /** Aborts the group on all ranks with `error` and throws it. For errors in the middle of a backward. */
  refuse(error: unknown): never {
    this.#fail(error);
  }

  /**
   * Runs `fn`. Gradients of backwards in it accumulate on this rank only; the next backward after it averages their
   * sum.
   */
  noSync<T>(fn: () => T): T {
    checkFunction('noSync', fn, 'a function, in which gradients accumulate');
    this.#checkOpen('noSync');
    this.checkIdle('noSync');
    return this.#pauses.during(fn);
  }

  /**
   * Declares that the gradients of the next backward are already multiplied by `weight`. The reduction then divides
   * their sum over all ranks by the sum of the weights. Weights of several backwards inside noSync add up. In a step,
   * either all ranks call it or none. `total` is the sum of the weights of all ranks in the step, if the program knows
   * it; see DistributedDataParallel.addWeight().
   */
  addWeight(weight: number, total?: number): void {
    this.#checkOpen('backward');
    this.#weights.add(weight, total);
  }

  /**
   * Runs a backward whose gradients are multiplied by `weight`; see addWeight(). If it throws while no
   * reduction is running, the weight is not counted.
   */
  withWeight(weight: number, total: number | undefined, backward: () => void): void {
    const before = this.#weights.save();
    this.addWeight(weight, total);
    try {
      backward();
    } catch (error) {
      if (this.#phase === 'idle' && this.#weights.own !== null) this.#weights.restore(before);
      throw error;
    }
  }

  /**
   * Makes every reduction begin with a participation exchange, until takePartWithoutData() ends, so that ranks may run
   * out of data.
   */
  beginJoin(): void {
    this.#checkOpen('join');
    this.checkIdle('join');
    if (this.#weights.isJoining) throw joinsTwice(this.#group.rank);
    this.#lastLive = 0; // of an earlier join(), perhaps in another group
    this.#weights.isJoining = true;
  }

  /**
   * Takes part in the reductions of the other ranks, with zero gradients that do not count, until no rank has data.
   * Call it on a rank that has run out of data. Resolves with the lowest of the ranks that had data longest.
   */
  async takePartWithoutData(): Promise<number> {
    this.checkIdle('join');
    for (;;) {
      const call = new Participation(this.#group, null);
      await runAwaiting(call.settle());
      if (call.firstLive === null) break;
      await this.#reduceNothing(call);
    }
    this.#weights.isJoining = false;
    return this.#lastLive;
  }

  /**
   * Takes part in the next averaged backward of the other ranks, which has weights, with no data and weight 0. `total`
   * must be the one that the others pass. Resolves when this rank has the averages in its gradients. Collective: in a
   * step, a rank either calls this or runs its backward.
   */
  async takePartOnce(total?: number): Promise<void> {
    this.#checkOpen('takePartOnce');
    this.checkIdle('takePartOnce');
    const { own } = this.#weights;
    if (own !== null && own > 0) throw accumulatedWithoutData(own, this.#group.rank);
    // Without the participation exchange, the other ranks use the state buffers and the bucket order of rank 0.
    if (total !== undefined && this.#group.rank === 0) throw rootWithoutData();
    this.#weights.setTotal(total);
    if (this.#unused !== 'skip') {
      const bare = this.#params.find((param) => !param.bindGrad && param.grad === null);
      if (bare !== undefined) this.#fail(gradMissing(bare.name, this.#group.rank));
    }
    await this.#reduceNothing(this.#weights.weightingOf(null, this.#group));
  }

  /**
   * Averages the gradients that backwards inside noSync have accumulated, without another backward. Resolves when all
   * gradients are averaged. Collective: for the other ranks it is one averaged backward.
   */
  async averageAccumulated(): Promise<void> {
    this.#checkOpen('average');
    this.checkIdle('average');
    this.#orFail(() => this.#begin(undefined));
    this.#endBackward(false);
    await this.#settled();
  }

  /** Divides the gradients that backwards inside noSync have accumulated, so that later ones get a larger weight. */
  divideAccumulated(divisor: number): void {
    this.#checkOpen('divideAccumulated');
    this.checkIdle('divideAccumulated');
    for (const param of this.#params) divideGrad(param, divisor);
  }

  /** Number of averaged backwards that have ended, over all groups. */
  get averages(): number {
    return this.#averages;
  }

  /**
   * Averages over `group` from now on, after the reducer's own group has failed or has been closed, or while it is
   * idle. Makes new buckets with the same plan; gradients are zero afterwards, or dropped in a group of one. The old
   * buckets are kept until their operations have ended. `model` is the name of the model for labels. Not collective.
   */
  rebind(group: Group, model = this.#model): void {
    this.#checkOpen('rebind');
    this.#buckets.keepUntilEnded();
    this.#reset();
    this.#weights.moved();
    this.#pauses.clear();
    this.timeline.drop();
    this.#group = group;
    this.#model = model;
    this.#usage = new Usage(this.#params.length, group);
    this.#hookCounts?.moveTo(group.rank);
    // leaveBuckets() drops gradients as well. In a larger group each new bucket would get a copy of them first.
    if (group.size > 1) for (const param of this.#params) param.dropGrad?.();
    this.#build(this.plan);
    if (group.size === 1) leaveBuckets(this.plan, this.#params);
    // New buckets are zero, unless gradients that could not be dropped have been copied into them.
    if (this.#params.some(({ dropGrad }) => dropGrad === undefined)) this.#buckets.clear();
  }

  /** Throws if the gradients of an earlier backward still need finish(). */
  checkIdle(where: string): void {
    if (this.#phase !== 'idle') throw unfinished(where, this.#group.rank);
  }

  /** Stops using the buckets. Does not wait for running operations. */
  close(): void {
    this.#isClosed = true;
    this.#buckets.retire();
    this.#reset();
  }

  /**
   * Makes new buckets. With unused: 'skip', gradients that did not exist are dropped again, because a bucket binds all
   * of its gradients, as zeros, and an optimizer would update parameters that no rank has used.
   */
  #build(plan: readonly BucketPlan[]): void {
    const missing = this.#unused === 'skip' ? this.#params.filter(({ grad }) => grad === null) : [];
    this.#buckets.build(plan, this.#group, this.#model);
    for (const param of missing) param.dropGrad?.();
  }

  /** Runs a reduction to which this rank contributes zeros. */
  async #reduceNothing(weighting: Weighting): Promise<void> {
    this.#weighting = weighting;
    this.#usage.reset();
    this.#phase = 'reducing';
    this.timeline.begin(this.plan);
    this.#buckets.collectNothing();
    this.#orFail(() => this.#launchFull());
    this.timeline.backwardEnded();
    await this.#settled();
  }

  #checkOpen(where: string): void {
    if (this.#isClosed) throw closed(where);
  }

  /** Returns whether `backward` is known to be another one than the running one. */
  #isOther(backward: object | undefined): boolean {
    return backward !== undefined && this.#backward !== undefined && backward !== this.#backward;
  }

  #begin(backward: object | undefined): void {
    this.#refuseUncapturable();
    this.#phase = 'backward';
    this.#backward = backward;
    this.timeline.begin(this.plan);
    if (!this.#launchesAtEnd()) this.#participate();
  }

  #beginCounting(): void {
    this.#hookCounts?.begin();
    if (this.#hookCounts?.isKnown) for (const index of this.#hookCounts.unused) this.#collect(index);
  }

  #participate(): void {
    this.#weighting = this.#weights.begin(this.#group);
  }

  /**
   * Returns whether nothing is launched before the end of backward. Batch norms exchange device memory in the same
   * group during backward. Where ranks may use different parameters, buckets become full at different places between
   * these exchanges, but all ranks must make the calls of a group in the same order.
   */
  #launchesAtEnd(): boolean {
    if (this.#unused === 'error' || !hasExchanges(this.#group)) return false;
    return this.plan.some(({ device }) => device.kind !== 'cpu');
  }

  /**
   * Checks the reducer's state while a step is captured: plain averages are captured with the step, and
   * everything else is refused. Later launches of the step are refused inside noSync and after a change of
   * the buckets.
   */
  #refuseUncapturable(): void {
    const recording = captureNow();
    if (recording === null) return;
    const { rank, size } = this.#group;
    const refuse = (what: string, next: string) => notCapturable(what, next, rank);
    if (this.#weights.isJoining)
      throw refuse('join()', 'Leave the step as it is where ranks may run out of data.');
    if (this.#weights.own !== null)
      throw refuse('an average with weights', 'Leave the weight out, or the step as it is.');
    if (size === 1) return;
    if (this.#unused === 'skip')
      throw refuse('finding parameters that no rank uses', "Pass unused: 'zero' or 'error' to ddp().");
    if (this.#hook !== plainHook)
      throw refuse('a communication hook', 'Leave the hook out, or the step as it is.');
    const { version } = this.#buckets;
    recording.onRun(() => {
      if (this.#buckets.version !== version) throw closed('a captured step');
      if (this.#pauses.any) throw capturedAverage(rank);
      this.checkIdle('a captured step');
      return () => {};
    });
  }

  #collect(index: number): void {
    const param = this.#params[index]!;
    if (param.requiresGrad === false) throw frozenLater(param.name, this.#group.rank);
    if (this.#unused !== 'skip' && !param.bindGrad && param.grad === null) {
      throw gradMissing(param.name, this.#group.rank);
    }
    this.timeline.arrived(index);
    this.#buckets.collect(index);
  }

  /** Launches the full buckets. A hook waits until settle() knows the weights, by which its gradients are divided. */
  #launchFull(areWeightsKnown = this.#weighting === null || this.#weighting.knownTotal !== null): void {
    if (!areWeightsKnown && this.#hook !== plainHook) return;
    for (;;) {
      const seq = this.#buckets.launchNext(this.#weighting);
      if (seq === null) return;
      this.timeline.launched(seq);
    }
  }

  /** `isCounted` is false for an average without a backward, in which no gradient is reported. */
  #endBackward(isCounted = true): void {
    this.timeline.backwardEnded();
    if (this.#phase !== 'backward') return;
    this.#orFail(() => {
      const counts = isCounted ? this.#hookCounts : null;
      if (counts?.isKnown === false) for (const index of counts.used) this.#collect(index);
      counts?.checkComplete();
      this.#contributeUnused();
      counts?.end();
      if (this.#launchesAtEnd()) this.#participate();
      this.#phase = 'reducing';
      this.#launchFull();
    });
  }

  #contributeUnused(): void {
    const rest = this.#buckets.missing;
    if (this.#unused === 'error') {
      // A parameter used only by backwards inside noSync is not reported in this one, but it has a gradient.
      const names = rest
        .filter((index) => !this.#usage.isUsed(index))
        .map((index) => this.#params[index]!.name);
      if (names.length > 0) throw unusedParams(names, this.#params.length, this.#group.rank);
    }
    for (const index of rest) this.#collect(index);
  }

  #settled(): Promise<void> {
    this.#settling ??= this.#settleOnce(this.#group);
    return this.#settling;
  }

  /** If rebind() has left `group` meanwhile, the state is that of another group, and stays as it is. */
  async #settleOnce(group: Group): Promise<void> {
    try {
      await runAwaiting(this.#settle());
    } catch (error) {
      if (this.#group !== group) throw error;
      this.#fail(error);
    }
    if (this.#group === group) this.#reset();
  }

  /** Runs the operations that remain after all buckets are launched. */
  *#settle(): Works {
    const isAlone = this.#group.size === 1;
    const exchangesUsage = this.#unused === 'skip' && !isAlone;
    if (exchangesUsage) yield* this.#usage.exchange();
    const weighting = this.#weighting;
    if (weighting !== null) {
      yield* weighting.settle();
      this.#lastLive = weighting.firstLive ?? 0;
      this.#launchFull(true);
    }
    yield* this.#buckets.settle(weighting);
    if (isAlone && weighting !== null) {
      for (const param of this.#params) divideGrad(param, weighting.divisor);
    }
    if (exchangesUsage) this.#dropUnused();
    if (isAlone && this.#unused === 'zero' && captureNow() === null) zeroMissing(this.plan, this.#params);
    const root = weighting?.firstLive ?? 0;
    for (const list of this.#buffers) {
      const state = list.map(({ value }) => carrier(value));
      for (const work of broadcasts(state, this.#group, root)) yield work;
    }
    if (this.#rebuildLimits && !isAlone) yield* this.#rebuild(this.#rebuildLimits, root);
    // Captured operations did not run now, and their launches are not timed.
    if (captureNow() === null) this.timeline.done();
    else this.timeline.drop();
    this.#averages++;
  }

  #dropUnused(): void {
    for (const [index, param] of this.#params.entries()) {
      if (this.#usage.isUsedAnywhere(index)) {
        if (param.grad === null) throw gradMissing(param.name, this.#group.rank);
        continue;
      }
      // A nonzero gradient comes from earlier backwards, so the program keeps it.
      if (param.keepsZeros !== true && this.#buckets.isZero(index)) param.dropGrad?.();
    }
  }

  *#rebuild(limits: PlanLimits, root: number): Works {
    this.#rebuildLimits = null;
    const params: PlanParam[] = [];
    for (const { dtype, device, slots } of this.plan) {
      for (const { param, count } of slots) params[param] = { dtype, device, count };
    }
    // All ranks use the bucket order of `root`, which had data. On a rank without data no gradients have arrived.
    const order = new Uint32Array(params.length);
    order.set(this.timeline.arrivals);
    yield this.#group.broadcast(order, { root });
    this.#build(planBuckets(params, limits, order));
  }

  #orFail(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * Aborts the group (unless it has failed by itself), because peers would wait for buckets that never come.
   * Throws `error`.
   */
  #fail(error: unknown): never {
    this.timeline.drop();
    this.#reset();
    this.#group.abort(error);
    throw error;
  }

  #reset(): void {
    this.#buckets.reset();
    this.#usage.reset();
    this.#weights.reset();
    this.#weighting = null;
    this.#phase = 'idle';
    this.#isFinishing = false;
    this.#settling = null;
    this.#backward = undefined;
  }
}

function divideGrad(param: BucketParam, divisor: number): void {
  const { grad } = param;
  if (grad === null || divisor === 1) return;
  if (param.divideGrad) param.divideGrad(divisor);
  else if (grad.host !== null) divide(grad, divisor);
  else throw cannotDivide(param.name);
}
