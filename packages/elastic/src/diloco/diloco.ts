// LocalSGD and DiLoCo: ranks train separately, and average their parameters every few steps, so that they send few
// bytes over a slow link. "DiLoCo" (Douillard et al., 2023, arXiv 2311.08105); fragments, delay and mix after
// "Streaming DiLoCo with overlapping communication" (Douillard et al., 2025, arXiv 2501.18512).
//
// Each rank has the global parameters, equal bit by bit on all ranks, in addition to its local ones. An average of a
// fragment goes through three states: started (its difference is being sent while training continues), complete (this
// rank has the sum and has changed nothing), applied. #pending has the started ones, in order. The rest of the work of
// a call is stored in #toStart and #pending, so that it continues where it stopped after a change of the group.
import { createHash } from 'node:crypto';
import { CollectiveError, type Group, refusingMembers } from '@ringwise/collectives';
import {
  buffersSymbol,
  type DistributedDataParallel,
  ddp,
  type FrozenParam,
  frozenParamsSymbol,
  type GradParam,
  type GradParamSource,
  gradParamsSymbol,
  type StateBuffer,
} from '@ringwise/ddp';
import { badOptions } from '../errors.ts';
import type { Change, Membership, Progress } from '../membership/membership.ts';
import { Average } from './average.ts';
import {
  averageInFlight,
  brokenOff,
  closed,
  noParams,
  notComplete,
  notFloat32,
  notParams,
  notWithin,
  onDevice,
  stillRunning,
  tooManyFragments,
} from './errors.ts';
import { Fragment } from './fragment.ts';
import { handOver, handOverRest, planHandover, type RoundProgress } from './handover.ts';
import {
  type CheckedOptions,
  checkGroup,
  type DilocoOptions,
  type OuterOptimizer,
  optionsOf,
  samplesOf,
} from './options.ts';
import { countLayers, fragmentsAt, planFragments } from './plan.ts';
import { type DilocoState, restoreState, savedState } from './state.ts';

type Source = GradParamSource | Iterable<GradParam>;

/** Argument of change(): a Change of the membership, or only the group of the remaining ranks. */
export interface DilocoChange extends Partial<Pick<Change, 'decision' | 'view'>> {
  /** Group of the remaining ranks. */
  readonly group: Group;
  /** The new value of the option `within`, if that was a group. */
  readonly within?: Group;
}

/** The result of a call that may average. */
export interface DilocoStepEnd {
  /** Whether an average was applied, so that the parameters have changed. */
  readonly averaged: boolean;
  /** Changes of the membership, in order. Always empty without `membership`. */
  readonly changes: readonly Change[];
  /** Whether this member has left the job, as it had requested. It takes no further steps. */
  readonly hasLeft: boolean;
}

/** One rank's part in the training of a model; diloco() makes it. */
export class DiLoCo<M = unknown> {
  /** The object that was passed to diloco(). */
  readonly module: M;
  /** The names of the parameters of each fragment. */
  readonly plan: readonly (readonly string[])[];
  readonly #options: CheckedOptions<M>;
  readonly #settings: string;
  readonly #fragments: readonly Fragment[];
  readonly #rest: readonly (FrozenParam | StateBuffer)[];
  #group: Group;
  #model: DistributedDataParallel<M> | null = null;
  #within: Group | null = null;
  #steps = 0;
  #applied = 0;
  #pending: Average[] = [];
  #toStart: number[] = [];
  /** Whether this rank has the state of the training; false on a joining rank until it has received the state. */
  #hasState = false;
  #isFinishing = false;
  #running: string | null = null;
  #failure: { readonly cause: unknown } | null = null;
  #isClosed = false;

  /** Copies the parameters. Use diloco(). @internal */
  constructor(module: M, options: CheckedOptions<M>) {
    const params = checkedParams(module);
    if (params.length === 0) throw noParams();
    const sizes = params.map(({ name, value }) => ({ name, count: value.count }));
    const plan = planFragments(sizes, options.fragments);
    if (plan === null) throw tooManyFragments(options.fragments, countLayers(sizes));
    this.module = module;
    this.plan = plan.map((positions) => positions.map((position) => params[position]!.name));
    this.#options = options;
    this.#group = options.group;
    this.#rest = restOf(module);
    this.#fragments = plan.map((positions, f) => {
      const own = positions.map((position) => params[position]!);
      return new Fragment(f, own, options.outer, options.wire === 'int8');
    });
    this.#settings = settingsOf(params, this.plan, options, this.optimizers);
  }

  /** The ranks that average with each other. change() replaces the group. */
  get group(): Group {
    return this.#group;
  }

  /** The wrapper that averages gradients within the subgroup; null without `within`, and after recover(). */
  get model(): DistributedDataParallel<M> | null {
    return this.#model;
  }

  /** The outer optimizers, one for each fragment; empty with 'average'. Change their options on all ranks alike. */
  get optimizers(): readonly OuterOptimizer[] {
    return this.#fragments.flatMap(({ outer }) => outer?.optimizer ?? []);
  }

  /** Number of inner steps so far. */
  get steps(): number {
    return this.#steps;
  }

  /** Number of averages of fragments that have been applied. */
  get averages(): number {
    return this.#applied;
  }

  /** Whether an average is in flight. */
  get isPending(): boolean {
    return this.#pending.length > 0;
  }

  /**
   * Ends an inner step, after backward. Calls step() of the inner optimizer, if diloco() got one; applies the averages
   * that have been in flight for `delay` steps, and starts those that are due. `samples` is the number of samples on
   * which this rank has trained in the step, the weight of its parameters in the next average; default 1. Every rank
   * calls it equally often. It is collective in the steps that start or apply an average, and waits for the averages
   * that it applies.
   *
   * Rejects with the group's error if a rank is lost and there is no `membership`: then call change().
   */
  async step(options?: { readonly samples?: number }): Promise<DilocoStepEnd> {
    const samples = samplesOf(options);
    return await this.#run('step', () => {
      const { inner, every, fragments } = this.#options;
      inner?.step();
      this.#steps++;
      for (const fragment of this.#fragments) fragment.samples += samples;
      this.#toStart = fragmentsAt(this.#steps, every, fragments);
    });
  }

  /**
   * Ends a training: applies the averages in flight, averages the inner steps since then, and sets the local parameters
   * to the global ones, so that they are equal on all ranks. Collective. The program may continue to train afterwards.
   */
  async finish(): Promise<DilocoStepEnd> {
    return await this.#run('finish', () => {
      this.#isFinishing = true;
      for (const average of this.#pending) average.dueStep = this.#steps;
      this.#toStart = [...this.#fragments.keys()];
    });
  }

  /**
   * Continues with another group, after a call that rejected because ranks were lost, or to let ranks join. Ranks that
   * join call diloco() with the new group at the same time, and get the global parameters and the state of the outer
   * optimizers. Averages in flight start again among the ranks of the new group, with their present parameters. Then
   * completes the call that failed. Collective on the new group; first waits until no operation of the old group is
   * running.
   *
   * If some ranks have applied an average that others have not, the others receive its result.
   */
  async change(change: DilocoChange): Promise<DilocoStepEnd> {
    checkGroup('group', (change as DilocoChange | undefined)?.group, 'change');
    this.#failure = null;
    return await this.#run(
      'change',
      () => {},
      () => this.#rebind('change', change),
    );
  }

  /**
   * Continues after a backward that failed because a rank of the subgroup `within` was lost. Until change(), or with a
   * membership until the next average, this rank trains without the subgroup. The gradients of that backward are
   * invalid: repeat it. Not collective, does not block. Throws `error` if it does not come from the subgroup.
   */
  recover(error: unknown): void {
    this.#checkIdle('recover');
    if (!CollectiveError.is(error) || this.#within === null || error.group !== this.#within.name) throw error;
    this.#model?.close();
    this.#model = null;
  }

  /**
   * Returns the state for a snapshot: global parameters, outer optimizers and counters, which are equal on all ranks,
   * and `own`, which differs between ranks: local parameters where they differ from the global ones, samples and
   * rounding errors. Leave `own` out of a snapshot that is to be loaded on another number of ranks. The arrays are
   * copies. Throws ERR_ELASTIC_USE while an average is in flight.
   */
  stateDict(): DilocoState {
    const { delay, every } = this.#options;
    this.#checkIdle('stateDict');
    if (this.isPending) throw averageInFlight('stateDict', delay, every);
    return savedState(this.#fragments, { steps: this.#steps, averages: this.#applied });
  }

  /**
   * Loads a state of stateDict(), also from a snapshot, whose tensors may be typed arrays or other objects with memory.
   * Sets the local parameters to those of `own`, or to the global ones without `own`. Not collective: all ranks must
   * load the same state. Throws ERR_ELASTIC_INVALID for the state of another model, before anything is changed.
   */
  loadStateDict(state: DilocoState): void {
    const { delay, every } = this.#options;
    this.#checkIdle('loadStateDict');
    if (this.isPending) throw averageInFlight('loadStateDict', delay, every);
    const { steps, averages } = restoreState(this.#fragments, state);
    this.#steps = steps;
    this.#applied = averages;
  }

  /** Stops averaging within the subgroup. Not collective; closes only groups that diloco() made itself. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#model?.close();
    if (this.#options.within === 'host') await this.#within?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Brings the ranks of the group to the same state for the first time. Collective. @internal */
  async begin(): Promise<void> {
    await this.#run(
      'diloco',
      () => {},
      () => this.#meet('diloco', this.#options.within),
    );
  }

  /**
   * Runs a call: `begin`, then `before`, if given, then the work that is due. With a membership, continues in the next
   * view after an error that is a change of the membership.
   */
  async #run(verb: string, begin: () => void, before?: () => Promise<void>): Promise<DilocoStepEnd> {
    this.#checkIdle(verb);
    this.#running = verb;
    const end = { averaged: false, changes: [] as Change[], hasLeft: false };
    try {
      begin();
      let work = before ?? (() => this.#advance(verb, end));
      for (;;) {
        try {
          await work();
          if (end.hasLeft) break;
          if (this.#isIdle) break;
          work = () => this.#advance(verb, end);
        } catch (error) {
          const { membership } = this.#options;
          if (membership === null || !membership.isChange(error)) {
            this.#failure = { cause: error };
            throw error;
          }
          work = () => this.#nextView(verb, membership, end, error);
        }
      }
      this.#isFinishing = false;
      return end;
    } finally {
      this.#running = null;
    }
  }

  /** Whether this step has no work left. */
  get #isIdle(): boolean {
    return this.#toStart.length === 0 && !this.#pending.some(({ dueStep }) => dueStep <= this.#steps);
  }

  #checkIdle(verb: string): void {
    if (this.#isClosed) throw closed(verb);
    if (this.#running !== null) throw stillRunning(verb, this.#running);
    if (this.#failure !== null) throw brokenOff(verb, this.#failure.cause);
  }

  /** Applies the averages that are due, starts those of the fragments that are due, and applies those without delay. */
  async #advance(
    verb: string,
    end: { averaged: boolean; changes: Change[]; hasLeft: boolean },
  ): Promise<void> {
    await this.#applyDue(verb, end);
    while (this.#toStart.length > 0 && !end.hasLeft) {
      const fragment = this.#fragments[this.#toStart.shift()!]!;
      const delay = this.#isFinishing ? 0 : this.#options.delay;
      const average = new Average(fragment, this.#steps + delay, fragment.samples);
      fragment.samples = 0;
      average.start(this.#group, this.#applied + this.#pending.length, this.#options.wire);
      this.#pending.push(average);
    }
    await this.#applyDue(verb, end);
  }

  async #applyDue(
    verb: string,
    end: { averaged: boolean; changes: Change[]; hasLeft: boolean },
  ): Promise<void> {
    const { membership } = this.#options;
    for (;;) {
      const average = this.#pending[0];
      if (average === undefined || average.dueStep > this.#steps || end.hasLeft) return;
      if (!average.isComplete) await average.complete(verb);
      const vote = await membership?.vote({ agreed: [this.#applied, average.fragment.index] });
      this.#apply();
      end.averaged = true;
      if (vote?.isLeaving) {
        end.hasLeft = true;
        await membership!.close();
        await this.close();
      } else if (vote?.changesView) await this.#nextView(verb, membership!, end);
    }
  }

  get #mix(): number {
    return this.#isFinishing ? 0 : this.#options.mix;
  }

  /** Applies the first pending average, which is complete. */
  #apply(): void {
    const { fragment, weights } = this.#pending.shift()!;
    fragment.advance(weights);
    fragment.adopt(this.#mix);
    this.#applied++;
  }

  async #nextView(
    verb: string,
    membership: Membership,
    end: { averaged: boolean; changes: Change[] },
    error?: unknown,
  ): Promise<void> {
    const progress: Progress = {
      finalSteps: this.#applied,
      isComplete: this.#pending[0]?.isComplete === true,
      hasState: this.#hasState,
    };
    const change = await membership.change(progress, error);
    end.changes.push(change);
    const before = this.#applied;
    await this.#rebind(verb, change);
    if (this.#applied > before) end.averaged = true;
  }

  /**
   * Switches to another group: commits or repeats the average in flight as the change decides, and starts the others
   * again.
   */
  async #rebind(verb: string, { group, decision = 'redo', view, within }: DilocoChange): Promise<void> {
    for (const average of this.#pending) await average.quiesce();
    if (decision === 'commit' && this.#hasState && (view === undefined || view.finalSteps > this.#applied)) {
      if (this.#pending[0]?.isComplete !== true) throw notComplete();
      this.#apply();
    }
    this.#group = group;
    // An average that was complete but is not final starts again. It must not count as complete if the new view is lost
    // as well, because members use its memory to send the state to others.
    for (const average of this.#pending) average.isComplete = false;
    await this.#meet(verb, within ?? this.#options.within);
  }

  /** Brings all ranks of the group to the same state, and starts the pending averages. Collective. */
  async #meet(verb: string, within: 'host' | Group | null): Promise<void> {
    const group = this.#group;
    const isNew = !this.#hasState;
    const handover = await planHandover(verb, group, {
      settings: this.#settings,
      applied: isNew ? null : this.#applied,
      hashes: this.#fragments.map((fragment) => fragment.hash()),
    });
    if (handover.receivers.length > 0) {
      const progress = await handOver(group, handover, this.#fragments, this.#progress());
      await handOverRest(group, handover, this.#rest, isNew);
      if (handover.receivers.includes(group.rank)) this.#receive(progress, handover.applied);
    }
    this.#hasState = true;
    for (const [i, average] of this.#pending.entries()) {
      average.weight += average.fragment.samples;
      average.fragment.samples = 0;
      average.start(group, this.#applied + i, this.#options.wire);
    }
    await this.#averageWithin(within);
  }

  #progress(): RoundProgress {
    const pending = this.#pending.map(({ fragment, dueStep }) => ({ fragment: fragment.index, dueStep }));
    return { steps: this.#steps, pending, toStart: this.#toStart, isFinishing: this.#isFinishing };
  }

  /** Applies the state received by handOver(): all of it on a new rank, else the averages that this rank missed. */
  #receive(progress: RoundProgress, applied: number): void {
    if (this.#hasState) {
      const missed = this.#pending.splice(0, applied - this.#applied);
      for (const { fragment } of missed) fragment.adopt(this.#mix);
    } else {
      this.#steps = progress.steps;
      this.#toStart = [...progress.toStart];
      this.#isFinishing = progress.isFinishing;
      this.#pending = progress.pending.map(
        ({ fragment, dueStep }) => new Average(this.#fragments[fragment]!, dueStep, 0),
      );
      for (const fragment of this.#fragments) fragment.adopt(0);
    }
    this.#applied = applied;
  }

  async #averageWithin(within: 'host' | Group | null): Promise<void> {
    if (within === null) return;
    const group = this.#group;
    this.#model?.close();
    if (this.#options.within === 'host') await this.#within?.close();
    const host = group.hosts.findIndex((ranks) => ranks.includes(group.rank));
    this.#within = within === 'host' ? await group.split(host) : within;
    const inside = this.#within;
    if (inside === null || !inside.ranks.every((rank) => group.ranks.includes(rank)))
      throw notWithin(group.rank);
    this.#model = await ddp(this.module as M & Source, { group: inside });
  }
}

const notAwaited = refusingMembers(
  { what: 'outer', call: 'diloco()', names: ['module', 'plan'] },
  DiLoCo.prototype,
  badOptions,
);

/**
 * Makes ranks train a model separately and average it every few steps (LocalSGD, DiLoCo). `source` is a model that
 * offers its trainable parameters (`Symbol.for('ringwise.gradParams')`), or a list of these: float32 in host memory.
 *
 * Collective: all ranks of the group call it at the beginning. Ranks that join an ongoing training call it while the
 * others call change(). Checks that all ranks have the same parameters and options, and gives all of them rank 0's
 * values, or those of the ongoing training. Keeps a copy of the parameters, the difference that is being averaged, and
 * the state of the outer optimizer, in host memory.
 *
 * Running statistics and other state buffers of a model are not averaged: each rank keeps its own.
 *
 * @example
 * ```ts
 * const outer = await diloco(net, {
 *   group,
 *   inner: new AdamW(net.parameters(), { lr: 1e-3 }),
 *   every: 100,
 *   outer: (params) => new SGD(params, { lr: 0.7, momentum: 0.9, nesterov: true }),
 * });
 * net.zeroGrad();
 * crossEntropy(net.forward(x), y).backward(); // sends nothing
 * await outer.step({ samples: 32 }); // averages in every 100th step
 * ```
 */
export function diloco<M extends Source>(source: M, options: DilocoOptions<M>): Promise<DiLoCo<M>> {
  return notAwaited(start(source, options));
}

async function start<M extends Source>(source: M, options: DilocoOptions<M>): Promise<DiLoCo<M>> {
  const made = new DiLoCo(source, optionsOf(options));
  await made.begin();
  return made;
}

/** Returns the trainable parameters of a model or list. Throws unless all are float32 in host memory. */
function checkedParams(source: unknown): GradParam[] {
  const offer = source as Partial<GradParamSource> & Partial<Iterable<GradParam>>;
  const isObject = (typeof source === 'object' || typeof source === 'function') && source !== null;
  if (!isObject || (!(gradParamsSymbol in offer) && !(Symbol.iterator in offer))) throw notParams();
  const params =
    gradParamsSymbol in offer ? [...offer[gradParamsSymbol]!()] : [...(offer as Iterable<GradParam>)];
  for (const param of params) {
    const { name, value } = (param ?? {}) as Partial<GradParam>;
    if (typeof name !== 'string' || typeof value?.count !== 'number') throw notParams();
    if (value.host === null) throw onDevice(name, value.device.kind);
    if (value.dtype !== 'float32') throw notFloat32(name, value.dtype);
  }
  return params;
}

/** Returns the frozen parameters and state buffers of a model. */
function restOf(source: unknown): (FrozenParam | StateBuffer)[] {
  const offer = source as Partial<GradParamSource>;
  const rest = [...(offer[frozenParamsSymbol]?.() ?? []), ...(offer[buffersSymbol]?.() ?? [])];
  for (const { name, value } of rest) if (value.host === null) throw onDevice(name, value.device.kind);
  return rest;
}

/** Formats the settings that must be equal on all ranks. */
function settingsOf(
  params: readonly GradParam[],
  plan: readonly (readonly string[])[],
  {
    every,
    outer,
    within,
    delay,
    mix,
    wire,
  }: Omit<CheckedOptions<unknown>, 'outer'> & { readonly outer: unknown },
  optimizers: readonly OuterOptimizer[],
): string {
  const hashOf = (value: unknown) =>
    createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);
  const shapes = params.map(({ name, value, shape = [value.count] }) => [name, value.dtype, shape]);
  const model = `${params.length} parameters (${hashOf(shapes)}) in ${plan.length} fragments (${hashOf(plan)})`;
  const optimizer = optimizers[0];
  const state = optimizer && { ...optimizer.stateDict(), tensors: null };
  const how = outer === 'average' ? 'average' : `${optimizer!.constructor.name} (${hashOf(state)})`;
  return `${model}, every ${every}, outer ${how}, ${within === null ? '' : 'within a subgroup, '}delay ${delay}, mix ${mix}, wire ${wire}`;
}
