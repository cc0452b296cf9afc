// A training that goes on when ranks are lost, leave or join. It enters a view in three parts, the same on all members:
// the model averages over the view's group, members without the state get it, and the loader begins at the cursor. If
// another rank is lost meanwhile, the same begins again in the next view.
import { setTimeout as sleep } from 'node:timers/promises';
import type { BufferCarrier, Group } from '@ringwise/collectives';
import type { Collated, Dataset } from '@ringwise/data';
import {
  convertSyncBatchNorm,
  type DistributedDataParallel,
  ddp,
  type GradParamSource,
  type ModuleTree,
  type ShardOptimizer,
  ZeroRedundancyOptimizer,
} from '@ringwise/ddp';
import { checkFunction, checkInteger, checkOptions } from '../check.ts';
import {
  behind,
  cameTooLate,
  jobMisused,
  joinCancelled,
  joinsWithPause,
  LearnerBehind,
  missedStep,
  rescued,
  rescueFailed,
  rescueMissing,
  rescueOnDevice,
  rescueSharded,
  stepNotAwaited,
  stepNotRun,
} from '../errors.ts';
import { type Learned, Learner } from '../learners/learner.ts';
import { Sources } from '../learners/sources.ts';
import { ElasticLoader, type LoadOptions, loadOptionNames } from '../ledger/elastic-loader.ts';
import { Ledger, type LedgerOptions, ledgerOptionNames } from '../ledger/ledger.ts';
import type { Chain } from '../membership/chain.ts';
import { isOver, JobEndedError } from '../membership/errors.ts';
import type { JobAccess } from '../membership/join.ts';
import type { Change, Membership, Vote } from '../membership/membership.ts';
import { transfer } from '../transfer/transfer.ts';
import { checkSameTraining, describeTraining } from './description.ts';
import { entryOf, type LogTarget, writeLog } from './log.ts';
import { checkDdpOptions, type ElasticDdpOptions } from './options.ts';
import { loadRescue, rescueFile, writeRescue } from './rescue.ts';
import { soloGroup } from './solo.ts';
import {
  type Attempt,
  attempt,
  ElasticStep,
  type RunOptions,
  type StepFunction,
  type StepResult,
} from './step.ts';
import { Trained } from './trained.ts';

/** A change of the view, as onView() reports it. */
export interface ViewChange {
  /** Number of the view. */
  readonly view: number;
  /** Number of ranks, now and in the view before; 0 before the first one. */
  readonly size: number;
  /** Number of ranks in the view before; 0 before the first one. */
  readonly was: number;
  /** Ids of members that joined, were lost, and left. */
  readonly joined: readonly string[];
  /** Ids of members that were lost. */
  readonly lost: readonly string[];
  /** Ids of members that left after their last step. */
  readonly left: readonly string[];
  /** Number of steps that are final. */
  readonly step: number;
  /** What the members that joined have got; null if there were none, or the job begins with this view. */
  readonly state: StateTransfer | null;
}

/** The state of the training as members that joined have got it. */
export interface StateTransfer {
  /** Bytes of the whole state. */
  readonly bytes: number;
  /** Bytes that were sent to each of them while the others waited. */
  readonly sentBytes: number;
  /** Number of members that sent these. */
  readonly sources: number;
  /** What this process has got before, while the others trained on; null if it has not joined now as a learner. */
  readonly learned: Learned | null;
}

/** Options of job.loader(). */
export type ElasticLoaderOptions = LedgerOptions & LoadOptions;

/** Parameters of fewer bytes are copied while the others wait, which takes less time than connecting does. */
const learnedBytes = 4 << 20;

/** How long to wait until the first rank of a job that has just begun has said what it trains, in milliseconds. */
const describedMs = 10_000;

interface Settings {
  readonly join: (prepare: (access: JobAccess) => Promise<void>) => Promise<Membership>;
  /** Whether this process gets the state before it joins; null if that depends on how much there is. */
  readonly learn: boolean | null;
  readonly log: LogTarget | null;
  readonly leaveOn: NodeJS.Signals | null;
  readonly rescueFolder: string | null;
}

/** A job that elastic() starts. */
export class ElasticJob {
  readonly #settings: Settings;
  readonly #listeners = new Set<(change: ViewChange) => void>();
  #membership: Membership | null = null;
  #trained: Trained | null = null;
  /** A view that this member has entered only in part. */
  #pending: Change | null = null;
  /** The view with which the job has ended. The step that it makes final is applied before the loop ends. */
  #ended: JobEndedError | null = null;
  /** Number of steps whose state this process has read from the rescue folder. */
  #rescuedSteps = 0;
  #hasState = false;
  #hasLeft = false;
  #isIterating = false;
  #size = 0;
  #stopListening: (() => void) | null = null;
  #learner: Learner | null = null;
  #sources: Sources | null = null;
  #access: JobAccess | null = null;
  /** What this process trains, for processes that join later. */
  #description = '';
  /** Aborted by close(): ends a process that has not joined yet. */
  readonly #closed = new AbortController();

  /** Use elastic(). @internal */
  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** The group of the present members. Valid until the view changes, so ask for it each time. After ddp() only. */
  get group(): Group {
    return this.#joined('group').group;
  }

  /**
   * Number of ranks at present. When a step has changed the view, this is already that of the next step; onView() is
   * called when that begins. After ddp() only.
   */
  get size(): number {
    return this.group.size;
  }

  /** This process's rank at present; it changes when lower ranks are lost. After ddp() only. */
  get rank(): number {
    return this.group.rank;
  }

  /** Whether this process is rank 0 at present. After ddp() only. */
  get leader(): boolean {
    return this.rank === 0;
  }

  /**
   * Whether this process has no part in the job any more: it has left by leave() or by a signal, or has come when the
   * training was over. steps() yields nothing then, and there is no group.
   */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Number of steps that are final. */
  get finalSteps(): number {
    return this.#trained?.finalSteps ?? 0;
  }

  /** Calls `listener` after each change of the view, when all members have the state. Returns a function to stop it. */
  onView(listener: (change: ViewChange) => void): () => void {
    checkFunction('onView', listener, 'a function that gets each change of the view');
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Makes the loader of the job: it deals the samples of a data set to steps and ranks, so that each sample of an epoch
   * is trained on once, whatever happens to the ranks. All ranks pass the same data set and options. Not collective.
   */
  loader<T, B>(
    dataset: Dataset<T, unknown> | readonly T[],
    options: ElasticLoaderOptions & { readonly collate: (samples: T[]) => B | Promise<B> },
  ): ElasticLoader<B>;
  loader<T, B = Collated<T>>(
    dataset: Dataset<T, B> | readonly T[],
    options: ElasticLoaderOptions,
  ): ElasticLoader<B>;
  loader<B>(
    dataset: Dataset<never, unknown> | readonly never[],
    options: ElasticLoaderOptions & { readonly collate?: unknown },
  ): ElasticLoader<B> {
    checkOptions('loader', options, [...ledgerOptionNames, ...loadOptionNames]);
    const pick = (names: readonly string[]) =>
      Object.fromEntries(Object.entries(options ?? {}).filter(([name]) => names.includes(name)));
    const ledger = new Ledger(dataset?.length, pick(ledgerOptionNames));
    return new ElasticLoader<B>(dataset, ledger, pick(loadOptionNames));
  }

  /**
   * Makes an optimizer for ddp() whose state is spread over the ranks (ZeRO, stage 1). `make` gets some of the
   * parameters, such as `(shard) => new AdamW(shard, { lr: 1e-3 })`, and is called again when the view changes. Two
   * ranks, on two hosts if possible, keep the state of each parameter, so that it survives the loss of one; if both are
   * lost at once, the job ends with ERR_DDP_STATE_LOST. Give a schedule `whole` of what is returned. Not collective.
   */
  zero<P extends BufferCarrier, O extends ShardOptimizer>(
    params: Iterable<P>,
    make: (shard: P[]) => O,
  ): ZeroRedundancyOptimizer<P, O> {
    return new ZeroRedundancyOptimizer(params, soloGroup(), make, { copies: 2 });
  }

  /**
   * Makes a model data-parallel, joins the job, and gets the state of the training from the members that have it, or,
   * in a new job, from the lowest one. A process that joins later gets most of the state while the others train on, as
   * a _learner_, and is admitted when it has taken all steps that they have. Resolves when this process takes part in
   * the next step; begin the loop soon, because the others wait. If the training is over when this process comes, it
   * resolves with a warning, and hasLeft is true. Call it once, when everything else is ready. Collective among the
   * members. Rejects with ERR_ELASTIC_BEHIND if a learner cannot keep up and `learn` is true, with ERR_ELASTIC_LEFT if
   * close() is called meanwhile.
   */
  async ddp<M extends GradParamSource>(
    source: M,
    options: ElasticDdpOptions,
  ): Promise<DistributedDataParallel<M>> {
    if (this.#trained !== null)
      throw jobMisused('ddp', 'the job has a model already; pass all parts of a model at once');
    checkDdpOptions(source, options);
    const { optimizer, loader, scaler = null, generators = [], extra = {}, tensor, ...others } = options;
    const { syncBatchNorm = false, ...rest } = others;
    const group = soloGroup();
    if (syncBatchNorm) {
      await convertSyncBatchNorm(source as unknown as ModuleTree, group); // rebind() makes the exchanges of a view
      loader.runTogether();
    }
    const model = await ddp(source, { ...rest, group });
    const trained = new Trained({
      ...{ source, optimizer, loader, scaler, generators, extra },
      hook: rest.hook?.shared ?? null,
      model: model as unknown as DistributedDataParallel<GradParamSource>,
      revive: tensor,
    });
    this.#description = describeTraining(trained.parts, others);
    const { rescueFolder } = this.#settings;
    if (rescueFolder !== null && trained.isFar) throw rescueOnDevice();
    if (rescueFolder !== null && trained.shards !== null) throw rescueSharded();
    if (rescueFolder !== null) this.#rescuedSteps = await loadRescue(rescueFolder, trained);
    try {
      this.#membership = await this.#settings.join((access) => this.#prepare(trained, access));
      if (this.#closed.signal.aborted) await this.#membership.close();
      this.#closed.signal.throwIfAborted();
    } catch (error) {
      await this.#learner?.close();
      if (!isOver(error)) {
        model.close();
        throw error;
      }
      this.#trained = trained;
      this.#hasLeft = true;
      this.#warnOfTheEnd(error);
      return model;
    }
    this.#trained = trained;
    this.#listen();
    this.#pending = this.#membership.first;
    await this.#enterView();
    return model;
  }

  /**
   * Yields the steps from where the job is up to the end of `epochs` epochs; call run() on each. Changes of the view
   * happen between two steps, or in run(). Ends early on a member that leaves. Collective.
   */
  async *steps<B = unknown>(
    loader: ElasticLoader<B>,
    options: { readonly epochs: number },
  ): AsyncGenerator<ElasticStep<B>, void, undefined> {
    checkOptions('steps', options, ['epochs']);
    // A call from JavaScript may have no options.
    checkInteger('steps: epochs', (options as Partial<typeof options> | undefined)?.epochs, 0);
    const { epochs } = options;
    if (this.#hasLeft) return;
    const trained = this.#training('steps');
    if ((loader as ElasticLoader) !== trained.parts.loader)
      throw jobMisused('steps', 'the loader is not the one that ddp() got');
    if (this.#isIterating) throw jobMisused('steps', 'a loop over the steps is running already');
    this.#isIterating = true;
    try {
      for (;;) {
        if (this.#ended !== null) throw await this.#rescue(trained, this.#ended);
        await this.#enterView();
        if (this.#hasLeft || loader.state().epoch >= epochs) return;
        const step = new ElasticStep<B>(loader.plan(), trained.finalSteps, (fn, options) =>
          this.#run(trained, fn, options),
        );
        yield step;
        if (!step.hasRun) throw stepNotRun(step.number);
        // The next step would be this one again, and the loop would not give way to what it waits for.
        if (step.isRunning) throw stepNotAwaited(step.number);
      }
    } finally {
      this.#isIterating = false;
    }
  }

  /**
   * Makes this process leave the job after the step in flight: steps() ends then. If all processes leave while another
   * one wishes to join, they give it the state first, and leave a step later. Does not block.
   */
  leave(): void {
    if (!this.#hasLeft) this.#joined('leave').leave();
  }

  /** Ends this process's part in the job, and the workers of the loader. Not collective. Idempotent. */
  async close(): Promise<void> {
    this.#stopListening?.();
    this.#stopListening = null;
    this.#closed.abort(joinCancelled());
    await this.#sources?.close();
    await this.#membership?.close();
    if (this.#trained === null) return;
    this.#trained.parts.model.close();
    await this.#trained.parts.loader.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Does what comes before the members know of this process. Rejects if it trains something else than they do. */
  async #prepare(trained: Trained, access: JobAccess): Promise<void> {
    this.#access = access;
    const theirs = await trainingOf(access.chain, this.#closed.signal);
    if (theirs !== null) checkSameTraining(this.#description, theirs);
    await this.#learn(trained, access);
  }

  /** Gets the state before this process joins, if there are members that train, and enough to be worth it. */
  async #learn(trained: Trained, access: JobAccess): Promise<void> {
    if (trained.wholeOptimizer === null) return; // no member has all that a learner needs
    this.#sources = new Sources(access, trained);
    const { learn } = this.#settings;
    if (!(learn ?? trained.parameterBytes >= learnedBytes)) return;
    this.#learner = new Learner(access, trained);
    try {
      await this.#learner.run(this.#closed.signal);
    } catch (error) {
      if (!(error instanceof LearnerBehind)) throw error;
      if (learn === true) throw behind(error);
      // A rank that costs the others a pause is worth more than none.
      process.emitWarning(joinsWithPause(error), { code: 'RINGWISE_JOIN_PAUSE' });
      await this.#learner.close();
      this.#learner = null;
    }
  }

  /** Runs one step until it is final. */
  async #run<B>(trained: Trained, fn: StepFunction<B>, { beforeUpdate }: RunOptions): Promise<StepResult> {
    const { loader } = trained.parts;
    for (;;) {
      await this.#enterView();
      const { group } = this;
      const plan = loader.plan();
      trained.begin();
      let done: Attempt | null = null;
      let vote: Vote;
      try {
        done = await attempt(trained.parts, plan, group, fn);
        const { finalSteps } = trained;
        const ballot = { agreed: [finalSteps, plan.epoch, plan.start, plan.end], finalSteps };
        const membership = this.#membership!;
        vote = group.supports.sync ? membership.voteSync(ballot) : await membership.vote(ballot);
      } catch (error) {
        await this.#change(error, done !== null);
        const next = this.#ended?.view ?? this.#pending!.view;
        if (next.finalSteps === trained.finalSteps) {
          trained.undo();
          if (this.#ended !== null) throw await this.#rescue(trained, this.#ended);
          await loader.restart({ rank: this.#pending!.group.rank, size: this.#pending!.group.size });
          continue;
        }
        // The others could have applied the averages only if all members had them.
        if (done === null) throw missedStep(trained.finalSteps, next.finalSteps);
        this.#finish(trained, plan, beforeUpdate);
        return { ...done, ranks: group.size };
      }
      this.#finish(trained, plan, beforeUpdate);
      if (trained.shards !== null || vote.changesView) await this.#afterVote(trained, vote);
      return { ...done, ranks: group.size };
    }
  }

  /** Ends a step whose vote was complete. A rank that is lost meanwhile does not undo it. */
  async #afterVote(trained: Trained, { isLeaving, changesView }: Vote): Promise<void> {
    let error: unknown;
    try {
      await trained.exchange();
      if (changesView) await trained.handOver(this.group, isLeaving);
    } catch (failure) {
      error = failure;
    }
    const isBroken = error !== undefined && !this.#membership!.isChange(error);
    if (isLeaving && !isBroken) await this.#depart();
    else if (changesView || error !== undefined) await this.#change(error, false);
  }

  #finish(trained: Trained, plan: ReturnType<ElasticLoader['plan']>, beforeUpdate?: () => void): void {
    try {
      trained.apply(beforeUpdate);
    } catch (error) {
      this.group.abort(error); // the others must not go on with another state
      throw error;
    }
    trained.parts.loader.finish(plan);
  }

  /** Enters a view that has been decided. Does nothing if there is none. */
  async #enterView(): Promise<void> {
    const trained = this.#training('steps');
    for (let change = this.#pending; change !== null; change = this.#pending) {
      const { view, group } = change;
      let state: StateTransfer | null;
      try {
        if (this.#hasState) this.#sources?.enter(view);
        const learned = (await this.#learner?.settle()) ?? null;
        await trained.parts.model.rebind(group);
        await trained.shards?.repair(group, withoutState(change));
        state = await this.#share(trained, change, learned);
        await trained.shards?.rebind(group);
        await trained.parts.loader.restart({ rank: group.rank, size: group.size });
        this.#pending = null;
      } catch (error) {
        await this.#change(error, false);
        if (this.#ended === null) continue;
        if (this.#hasState || !isOver(this.#ended)) throw await this.#rescue(trained, this.#ended);
        this.#warnOfTheEnd(this.#ended);
        await this.#depart();
        return;
      }
      const was = this.#size;
      this.#size = group.size;
      // A later view says it again, also in a store to which the job has moved. The training does not need it.
      if (this.leader) this.#access?.chain.describe(this.#description).catch(() => {});
      const { joined, lost, left } = view;
      writeLog(this.#settings.log, entryOf(view, trained.finalSteps), this.leader);
      const report = {
        view: view.number,
        size: group.size,
        was,
        joined,
        lost,
        left,
        step: trained.finalSteps,
        state,
      };
      for (const listener of this.#listeners) listener(report);
    }
  }

  /** Gives the state to members that have none. In a new job, that of rank 0. */
  async #share(trained: Trained, change: Change, learned: Learned | null): Promise<StateTransfer | null> {
    const { group, joined, view } = change;
    let state: StateTransfer | null = null;
    const without = withoutState(change);
    if (joined.length === group.size && view.number > 0 && view.finalSteps > 0)
      throw missedStep(trained.finalSteps, view.finalSteps);
    if (without.length > 0) {
      const root = group.ranks.findIndex((_, rank) => !without.includes(rank));
      await trained.broadcastFar(group, root);
      const { bytes, stateBytes, sources } = await transfer(group, without, {
        save: () => trained.save(),
        held: () => this.#learner?.held() ?? null,
        load: (value, unchanged) => {
          trained.load(value, unchanged);
          this.#hasState = true;
        },
        ...(trained.parts.revive && { revive: trained.parts.revive }),
      });
      if (joined.length < group.size)
        state = { bytes: stateBytes, sentBytes: bytes, sources: sources.length, learned };
    }
    if (view.number === 0 && this.#rescuedSteps > trained.finalSteps)
      throw rescueMissing(this.#settings.rescueFolder!, this.#rescuedSteps, trained.finalSteps);
    this.#hasState = true;
    this.#learner = null;
    if (this.#sources !== null && trained.observer === null) {
      trained.observer = this.#sources;
      this.#sources.enter(view);
    }
    return state;
  }

  /** Writes the state of a job that has ended, on one of its last members. Returns the error that says so. */
  async #rescue(trained: Trained, failure: JobEndedError): Promise<Error> {
    const { rescueFolder: folder } = this.#settings;
    const { members, joined, finalSteps } = failure.view;
    const writer = members.find(({ id }) => !joined.includes(id))?.id;
    if (folder === null || writer === undefined || !this.#hasState || trained.finalSteps !== finalSteps)
      return failure;
    try {
      const file = rescueFile(folder, finalSteps);
      if (writer === this.#membership!.self.id) await writeRescue(folder, trained);
      return rescued(failure, finalSteps, file, writer);
    } catch (error) {
      return rescueFailed(failure, folder, error);
    }
  }

  /**
   * Ends the view, and notes if the job ends with it. After an error: throws it if it is not a change of the
   * membership; then the other ranks end, too.
   */
  async #change(error: unknown, isComplete: boolean): Promise<void> {
    const membership = this.#membership!;
    if (error !== undefined && !membership.isChange(error)) {
      membership.group.abort(error);
      throw error;
    }
    const { finalSteps } = this.#training('change');
    const progress = { finalSteps, isComplete, hasState: this.#hasState };
    try {
      this.#pending = await membership.change(progress, error);
    } catch (failure) {
      if (!(failure instanceof JobEndedError)) throw failure;
      this.#ended = failure;
      this.#pending = null;
    }
  }

  /** Tells the user of a process that came when the training was over. */
  #warnOfTheEnd({ view }: JobEndedError): void {
    process.emitWarning(
      `ddp: ${view.ended}. This process takes no part in it. A new job needs another run id.`,
      {
        code: 'RINGWISE_TRAINING_OVER',
      },
    );
  }

  async #depart(): Promise<void> {
    this.#hasLeft = true;
    this.#stopListening?.();
    this.#stopListening = null;
    await this.#sources?.close();
    await this.#membership!.close();
  }

  /** Leaves at a signal. A second one has its usual effect. */
  #listen(): void {
    const { leaveOn } = this.#settings;
    if (leaveOn === null) return;
    const leave = () => this.#membership?.leave();
    process.once(leaveOn, leave);
    this.#stopListening = () => void process.off(leaveOn, leave);
  }

  #joined(what: string): Membership {
    if (this.#membership === null && this.#hasLeft) throw cameTooLate(what);
    if (this.#membership === null)
      throw jobMisused(what, 'the process joins the job in ddp(); expected that before');
    return this.#membership;
  }

  #training(what: string): Trained {
    this.#joined(what);
    return this.#trained!;
  }
}

/** Returns what the members of a job train; null if there are none, or they have not said it after some time. */
async function trainingOf(chain: Chain, signal: AbortSignal): Promise<string | null> {
  for (const endMs = performance.now() + describedMs; ; await sleep(100, undefined, { signal })) {
    const training = await chain.training();
    if (training !== null || (await chain.head()) === null || performance.now() > endMs) return training;
  }
}

/** Ranks that get the state from the others. In a new job that are all but the first. */
const withoutState = ({ group, joined }: Change): readonly number[] =>
  joined.length === group.size ? joined.slice(1) : joined;
