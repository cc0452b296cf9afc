// Turns gradients that become ready one by one into buckets that are averaged in index order.
//
//   idle ── first ready() ──▶ backward ── all ready, or end of backward ──▶ reducing ── all averaged ──▶ idle
//
// A full bucket is launched from inside backward, which goes on meanwhile. Every rank starts the same operations in the
// same order: the participation exchange (with weights or joins), the buckets by index even when a later one is full first, and at
// the end of backward the used parameters, the rest of the hooks, state buffers, the new layout. A group of one has no
// buckets; its gradients are averages already, but mistakes are reported as in any group.
import { captureNow, type Group } from '@ringwise/collectives';
import { checkBoolean, checkFunction, checkOneOf, checkOptions, checkString } from '../check.ts';
import {
  badWeight,
  cannotDivide,
  capturedAverage,
  closed,
  frozenLater,
  gradMissing,
  notCapturable,
  readyTwice,
  unfinished,
  unusedParams,
} from '../errors.ts';
import { Timeline } from '../statistics/timeline.ts';
import type { StateBuffer } from '../wrapper/grad-param.ts';
import { Bucket, type BucketParam } from './bucket.ts';
import { type CommHook, checkHook, plainHook } from './hook.ts';
import { HookCounts } from './hook-counts.ts';
import { broadcasts, carrier } from './memory.ts';
import { Participation } from './participation.ts';
import { type BucketPlan, type PlanLimits, type PlanParam, planBuckets } from './plan.ts';
import { divide } from './scale.ts';
import { Usage } from './usage.ts';
import { runAwaiting, runBlocking, type Works } from './works.ts';

/** What to do about parameters that got no gradient in a backward; see DdpOptions. */
export type UnusedPolicy = 'error' | 'zero' | 'skip';

export interface ReducerOptions {
  /** Default 'error'. */
  readonly unused?: UnusedPolicy;
  /** Default false. */
  readonly staticGraph?: boolean;
  /** Default: the average as it is. */
  readonly hook?: CommHook;
  /** Limits of the layout after the first backward; by default it stays. */
  readonly rebuild?: PlanLimits | null;
  /** What the labels of its operations name, the same on all ranks. Default 'a model'. */
  readonly model?: string;
  /** Given to all ranks in every averaged backward, from the lowest rank that has data. */
  readonly buffers?: readonly Pick<StateBuffer, 'value'>[];
}

const optionNames = ['unused', 'staticGraph', 'hook', 'rebuild', 'model', 'buffers'] as const;

export class Reducer {
  readonly timeline = new Timeline();
  readonly #group: Group;
  readonly #params: readonly BucketParam[];
  readonly #unused: UnusedPolicy;
  readonly #hook: CommHook;
  readonly #model: string;
  readonly #buffers: readonly Pick<StateBuffer, 'value'>[];
  readonly #usage: Usage;
  readonly #hookCounts: HookCounts | null;
  #rebuildLimits: PlanLimits | null;
  #plan: readonly BucketPlan[];
  #buckets: readonly Bucket[] = [];
  /** By parameter: its bucket and its slot there. */
  #places: { readonly bucket: Bucket; readonly slot: number }[] = [];
  readonly #isReady: boolean[];
  #readyCount = 0;
  #launched = 0;
  #phase: 'idle' | 'backward' | 'reducing' = 'idle';
  /** The backward that is under way; undefined where the engine does not tell. */
  #backward: object | undefined;
  #isClosed = false;
  #pauses = 0;
  /** Of this rank since the last reduction; null where nobody has given one. */
  #weight: number | null = null;
  #isJoining = false;
  #participation: Participation | null = null;
  /** The lowest of the ranks that had data in the last reduction with a participation exchange. */
  #lastLive = 0;

  /** Allocates the buckets and binds gradients to them. `plan` is planBuckets(params), the same on all ranks. */
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
    this.#buffers = buffers;
    this.#rebuildLimits = rebuild;
    this.#isReady = params.map(() => false);
    this.#usage = new Usage(params.length, group);
    this.#hookCounts = staticGraph ? new HookCounts(params, group.rank) : null;
    this.#plan = plan;
    this.#build();
  }

  /** The buckets, in the order in which they are averaged. */
  get plan(): readonly BucketPlan[] {
    return this.#plan;
  }

  /**
   * The gradient of parameter `index` is final. Launches what is full; does not block. `backward` stands for the backward
   * that has made it: throws if an earlier one has not come to its end, because it threw.
   */
  ready(index: number, backward?: object): void {
    this.#checkOpen('backward');
    this.#usage.mark(index);
    if (this.#pauses > 0) return;
    this.#orFail(() => {
      const isOther = this.#phase === 'backward' && this.#isOther(backward);
      if (this.#phase === 'reducing' || isOther) throw unfinished('backward', this.#group.rank);
      if (this.#phase === 'idle') this.#begin(backward);
      if (this.#hookCounts && !this.#hookCounts.isLast(index)) return;
      if (this.#isReady[index]) throw readyTwice(this.#params[index]!.name, this.#group.rank);
      this.#collect(index);
      if (this.#readyCount === this.#params.length) this.#phase = 'reducing';
      this.#launchFull();
    });
  }

  /**
   * Backward is over: launches what is left, and blocks until all is averaged if the group may block. Otherwise
   * finish() has to be awaited. Does nothing if no gradient became ready, or if `backward` is not the one in which they did.
   */
  backwardEnded(backward?: object): void {
    if (this.#phase === 'idle' || this.#isOther(backward)) return;
    this.#endBackward();
    if (!this.#group.supports.sync) return;
    this.#orFail(() => runBlocking(this.#settle()));
    this.#reset();
  }

  /** Launches what is left and waits until all is averaged. Returns at once if nothing is under way. */
  async finish(): Promise<void> {
    if (this.#phase === 'idle') return;
    this.#endBackward();
    await this.#settled();
  }

  /** Makes the group fail with `error` on all ranks, and throws it. For errors in the middle of a backward. */
  refuse(error: unknown): never {
    this.#fail(error);
  }

  /** Runs `fn`, in which gradients accumulate on this rank only. The next backward after it averages their sum. */
  noSync<T>(fn: () => T): T {
    checkFunction('noSync', fn, 'a function, in which gradients accumulate');
    this.#checkOpen('noSync');
    this.checkIdle('noSync');
    this.#pauses++;
    const resume = () => {
      this.#pauses--;
    };
    let result: T;
    try {
      result = fn();
    } catch (error) {
      resume();
      throw error;
    }
    if (typeof (result as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function') {
      return Promise.resolve(result).finally(resume) as T;
    }
    resume();
    return result;
  }

  /**
   * The gradients of the next backward are multiplied by `weight` already: the reduction divides their sum over all
   * ranks by the sum of the weights. Adds up over backwards inside noSync. Every rank calls it, or none.
   */
  addWeight(weight: number): void {
    this.#checkOpen('backward');
    if (!(typeof weight === 'number' && weight >= 0 && weight < Infinity)) throw badWeight(weight);
    this.#weight = (this.#weight ?? 0) + weight;
  }

  /** Runs a backward whose gradients `weight` multiplies; see addWeight(). One that throws at once counts for nothing. */
  withWeight(weight: number, backward: () => void): void {
    const before = this.#weight;
    this.addWeight(weight);
    try {
      backward();
    } catch (error) {
      if (this.#phase === 'idle' && this.#weight !== null) this.#weight = before;
      throw error;
    }
  }

  /** From now on every reduction begins with a participation exchange, so that ranks may run out of data; see shadow(). */
  beginJoin(): void {
    this.#checkOpen('join');
    this.checkIdle('join');
    this.#isJoining = true;
  }

  /**
   * This rank has no more data: it takes part in the reductions of the others, with weight 0, until none has any.
   * Returns the lowest of the ranks that went on longest.
   */
  async shadow(): Promise<number> {
    this.checkIdle('join');
    for (;;) {
      const call = new Participation(this.#group, null);
      await runAwaiting(call.settle());
      if (call.firstLive === null) break;
      this.#participation = call;
      this.#usage.reset();
      this.#phase = 'reducing';
      this.timeline.begin(this.#plan);
      for (const bucket of this.#buckets) bucket.collectNothing();
      this.#orFail(() => this.#launchFull());
      this.timeline.backwardEnded();
      await this.#settled();
    }
    this.#isJoining = false;
    return this.#lastLive;
  }

  /** Throws if the gradients of an earlier backward still wait for finish(). */
  checkIdle(where: string): void {
    if (this.#phase !== 'idle') throw unfinished(where, this.#group.rank);
  }

  /** No bucket will be used again. What is under way is not waited for. */
  close(): void {
    this.#isClosed = true;
    this.#retire();
    this.#reset();
  }

  #checkOpen(where: string): void {
    if (this.#isClosed) throw closed(where);
  }

  /** Whether this is surely not the backward that is under way. */
  #isOther(backward: object | undefined): boolean {
    return backward !== undefined && this.#backward !== undefined && backward !== this.#backward;
  }

  #retire(): void {
    for (const bucket of this.#buckets) bucket.retire();
    this.#buckets = [];
  }

  #build(): void {
    const { size } = this.#group;
    this.#places = [];
    this.#retire();
    this.#buckets =
      size === 1
        ? []
        : this.#plan.map(
            (_, i) => new Bucket(this.#plan, i, this.#params, this.#group, this.#hook, this.#model),
          );
    this.#buckets.forEach((bucket, index) => {
      this.#plan[index]!.slots.forEach(({ param }, slot) => {
        this.#places[param] = { bucket, slot };
      });
    });
  }

  #begin(backward: object | undefined): void {
    this.#refuseWhatIsNotRecorded();
    this.#phase = 'backward';
    this.#backward = backward;
    this.timeline.begin(this.#plan);
    if (this.#isJoining || this.#weight !== null) {
      this.#participation = new Participation(this.#group, this.#weight ?? 1);
    }
    this.#hookCounts?.begin();
    if (this.#hookCounts?.isKnown)
      for (const index of this.#hookCounts.positions(false)) this.#collect(index);
  }

  /**
   * While a step is captured: the averages are captured with it, and nothing else of this is. A run in a place where gradients
   * are not to be averaged is refused.
   */
  #refuseWhatIsNotRecorded(): void {
    const recording = captureNow();
    if (recording === null) return;
    const { rank, size } = this.#group;
    const refuse = (what: string, next: string) => notCapturable(what, next, rank);
    if (this.#isJoining) throw refuse('join()', 'Leave the step as it is where ranks may run out of data.');
    if (this.#weight !== null)
      throw refuse('an average with weights', 'Leave the weight out, or the step as it is.');
    if (size === 1) return;
    if (this.#unused === 'skip')
      throw refuse('finding parameters that no rank uses', "Pass unused: 'zero' or 'error' to ddp().");
    if (this.#hook !== plainHook)
      throw refuse('a communication hook', 'Leave the hook out, or the step as it is.');
    const buckets = this.#buckets;
    recording.onRun(() => {
      if (this.#buckets !== buckets) throw closed('a captured step');
      if (this.#pauses > 0) throw capturedAverage(rank);
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
    this.#isReady[index] = true;
    this.#readyCount++;
    this.timeline.arrived(index);
    const place = this.#places[index];
    place?.bucket.collect(place.slot);
  }

  #launchFull(): void {
    while (this.#buckets[this.#launched]?.isFull) {
      this.timeline.launched(this.#buckets[this.#launched++]!.launch(this.#participation !== null));
    }
  }

  #endBackward(): void {
    this.timeline.backwardEnded();
    if (this.#phase !== 'backward') return;
    this.#orFail(() => {
      if (this.#hookCounts?.isKnown === false) {
        for (const index of this.#hookCounts.positions(true)) this.#collect(index);
      }
      this.#hookCounts?.end();
      this.#contributeUnused();
      this.#phase = 'reducing';
      this.#launchFull();
    });
  }

  #contributeUnused(): void {
    const rest = [...this.#params.keys()].filter((index) => !this.#isReady[index]);
    if (this.#unused === 'error') {
      // What only backwards inside noSync have used is not in this one, but has a gradient.
      const names = rest
        .filter((index) => !this.#usage.isUsed(index))
        .map((index) => this.#params[index]!.name);
      if (names.length > 0) throw unusedParams(names, this.#params.length, this.#group.rank);
    }
    for (const index of rest) this.#collect(index);
  }

  async #settled(): Promise<void> {
    try {
      await runAwaiting(this.#settle());
    } catch (error) {
      this.#fail(error);
    }
    this.#reset();
  }

  /** What remains when all buckets are launched. */
  *#settle(): Works {
    const isAlone = this.#group.size === 1;
    const asksWhatIsUsed = this.#unused === 'skip' && !isAlone;
    if (asksWhatIsUsed) yield* this.#usage.exchange();
    let totalWeight: number | null = null;
    if (this.#participation) {
      yield* this.#participation.settle();
      this.#lastLive = this.#participation.firstLive!;
      totalWeight = this.#participation.totalWeight || 1; // all weights 0: so are all gradients
    }
    for (const bucket of this.#buckets) yield* bucket.settle(totalWeight);
    if (isAlone && totalWeight !== null) {
      for (const param of this.#params) divideGrad(param, totalWeight);
    }
    if (asksWhatIsUsed) this.#dropUnused();
    const root = this.#participation?.firstLive ?? 0;
    const state = this.#buffers.map(({ value }) => carrier(value));
    for (const work of broadcasts(state, this.#group, root)) yield work;
    if (this.#rebuildLimits && !isAlone) yield* this.#rebuild(this.#rebuildLimits, root);
    // What was captured did not happen yet, and later nobody looks.
    if (captureNow() === null) this.timeline.done();
    else this.timeline.drop();
  }

  #dropUnused(): void {
    for (const [index, param] of this.#params.entries()) {
      if (this.#usage.isUsedAnywhere(index)) {
        if (param.grad === null) throw gradMissing(param.name, this.#group.rank);
        continue;
      }
      const { bucket, slot } = this.#places[index]!;
      // Anything else is a gradient of earlier backwards, which the program has kept.
      if (bucket.isZero(slot)) param.dropGrad?.();
    }
  }

  *#rebuild(limits: PlanLimits, root: number): Works {
    this.#rebuildLimits = null;
    const params: PlanParam[] = [];
    for (const { dtype, device, slots } of this.#plan) {
      for (const { param, count } of slots) params[param] = { dtype, device, count };
    }
    // A rank that has no more data saw no gradients arrive; its own order is not looked at.
    const order = new Uint32Array(params.length);
    order.set(this.timeline.arrivals);
    yield this.#group.broadcast(order, { root });
    this.#plan = planBuckets(params, limits, order);
    this.#build();
  }

  #orFail(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Peers wait for buckets that will never come, so the whole group is told (unless it has failed by itself). */
  #fail(error: unknown): never {
    this.timeline.drop();
    this.#reset();
    this.#group.abort(error);
    throw error;
  }

  #reset(): void {
    for (const bucket of this.#buckets) bucket.reset();
    this.#usage.reset();
    this.#isReady.fill(false);
    this.#readyCount = 0;
    this.#launched = 0;
    this.#weight = null;
    this.#participation = null;
    this.#phase = 'idle';
    this.#backward = undefined;
  }
}

function divideGrad(param: BucketParam, divisor: number): void {
  const { grad } = param;
  if (grad === null || divisor === 1) return;
  if (grad.host !== null) divide(grad, divisor);
  else if (param.divideGrad) param.divideGrad(divisor);
  else throw cannotDivide(param.name);
}
