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
import { cameTooLate, jobMisused, joinCancelled, missedStep, stepNotAwaited, stepNotRun } from '../errors.ts';
import { ElasticLoader, type LoadOptions, loadOptionNames } from '../ledger/elastic-loader.ts';
import { Ledger, type LedgerOptions, ledgerOptionNames } from '../ledger/ledger.ts';
import type { Membership, Vote } from '../membership/membership.ts';
import { describeTraining } from './description.ts';
import { checkDdpOptions, type ElasticDdpOptions } from './options.ts';
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
import { type JobSettings, type ViewChange, Views } from './views.ts';

/** Options of job.loader(). */
export type ElasticLoaderOptions = LedgerOptions & LoadOptions;

/** An elastic job of this process; elastic() makes it. */
export class ElasticJob {
  readonly #settings: JobSettings;
  readonly #listeners = new Set<(change: ViewChange) => void>();
  #views: Views | null = null;
  /** Null until this process has joined. */
  #trained: Trained | null = null;
  /** Whether ddp() has been called. */
  #isTaken = false;
  #isIterating = false;
  /** Aborted by close(): ends a process that has not joined yet. */
  readonly #closed = new AbortController();

  /** Use elastic(). @internal */
  constructor(settings: JobSettings) {
    this.#settings = settings;
  }

  /**
   * The group of the present members. The job closes it when the view changes, so read it each time. Throws
   * ERR_ELASTIC_USE before ddp(), and ERR_ELASTIC_OVER if the training was over before this process joined.
   */
  get group(): Group {
    return this.#joined('group').group;
  }

  /**
   * The present number of ranks. When a step has changed the view, this is already the number for the next step;
   * onView() is called when that step begins. Throws as `group` does.
   */
  get size(): number {
    return this.group.size;
  }

  /** The present rank of this process; it changes when lower ranks are lost. Throws as `group` does. */
  get rank(): number {
    return this.group.rank;
  }

  /** Whether this process is rank 0 at present. Throws as `group` does. */
  get leader(): boolean {
    return this.rank === 0;
  }

  /**
   * Whether this process is no longer a member: it has left by leave() or by a signal, or it was started when the
   * training was over. steps() then yields nothing, and there is no group.
   */
  get hasLeft(): boolean {
    return this.#views?.hasLeft ?? false;
  }

  /** Number of steps that are final; 0 before ddp(). */
  get finalSteps(): number {
    return this.#trained?.finalSteps ?? 0;
  }

  /**
   * Calls `listener` after each change of the view, when all members have the state. Returns a function that removes
   * the listener.
   */
  onView(listener: (change: ViewChange) => void): () => void {
    checkFunction('onView', listener, 'a function that gets each change of the view');
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Makes the loader of the job. It assigns the samples of a data set to steps and ranks, so that each sample of an
   * epoch is trained on once, even if ranks are lost or join. All ranks pass the same data set and options. Not
   * collective. Throws ERR_ELASTIC_INVALID for a wrong option.
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
   * Makes an optimizer for ddp() whose state is sharded over the ranks (ZeRO, stage 1). `make` gets some of the
   * parameters, such as `(shard) => new AdamW(shard, { lr: 1e-3 })`, and is called again when the view changes. Two
   * ranks, on two hosts if possible, keep the state of each parameter, so that it survives the loss of one; if both are
   * lost at once, the job ends with ERR_DDP_STATE_LOST. Pass `whole` of the result to a learning-rate schedule. Not
   * collective.
   */
  zero<P extends BufferCarrier, O extends ShardOptimizer>(
    params: Iterable<P>,
    make: (shard: P[]) => O,
  ): ZeroRedundancyOptimizer<P, O> {
    return new ZeroRedundancyOptimizer(params, soloGroup(), make, { copies: 2 });
  }

  /**
   * Makes a model data-parallel, joins the job, and gets the state of the training: from the members that have it, or,
   * in a new job, from the lowest rank. A process that joins later receives most of the state while the others continue
   * training, as a _learner_, and is admitted when it has applied all their steps. Resolves when this process takes
   * part in the next step; begin the loop soon, because the others wait. If the training is over before this process
   * has joined, it warns and resolves, and hasLeft is true. Call it once, when everything else is ready. Collective
   * among the members. Rejects with ERR_ELASTIC_BEHIND if a learner cannot keep up and `learn` is true, and with
   * ERR_ELASTIC_LEFT if close() is called meanwhile.
   */
  async ddp<M extends GradParamSource>(
    source: M,
    options: ElasticDdpOptions,
  ): Promise<DistributedDataParallel<M>> {
    if (this.#isTaken)
      throw jobMisused('ddp', 'the job has a model already; pass all parts of a model at once');
    checkDdpOptions(source, options);
    this.#isTaken = true;
    try {
      return await this.#join(source, options);
    } catch (error) {
      this.#isTaken = this.#trained !== null; // a process that has not joined may try again
      throw error;
    }
  }

  /**
   * Yields the steps from the job's present position to the end of `epochs` epochs; call run() on each. The view
   * changes between two steps, or in run(). Ends early on a member that leaves. Collective.
   */
  async *steps<B = unknown>(
    loader: ElasticLoader<B>,
    options: { readonly epochs: number },
  ): AsyncGenerator<ElasticStep<B>, void, undefined> {
    checkOptions('steps', options, ['epochs']);
    // A call from JavaScript may have no options.
    checkInteger('steps: epochs', (options as Partial<typeof options> | undefined)?.epochs, 0);
    const { epochs } = options;
    if (this.hasLeft) return;
    const trained = this.#training('steps');
    if ((loader as ElasticLoader) !== trained.parts.loader)
      throw jobMisused('steps', 'the loader is not the one that ddp() got');
    if (this.#isIterating) throw jobMisused('steps', 'a loop over the steps is running already');
    this.#isIterating = true;
    try {
      for (;;) {
        this.#checkOpen('steps');
        await this.#views!.enter();
        if (this.hasLeft || loader.state().epoch >= epochs) return;
        const step = new ElasticStep<B>(loader.plan(), trained.finalSteps, (fn, options) =>
          this.#run(trained, fn, options),
        );
        yield step;
        if (!step.hasRun) throw stepNotRun(step.number);
        // The next iteration would yield this step again, and the loop would block the event loop that run() needs.
        if (step.isRunning) throw stepNotAwaited(step.number);
      }
    } finally {
      this.#isIterating = false;
    }
  }

  /**
   * Makes this process leave the job after the step in flight. If called between two steps, it leaves after the next
   * one, because the others learn of it in that step's vote. steps() then ends. If all processes leave while another
   * one waits to join, they send it the state first, and leave one step later. Does not block.
   */
  leave(): void {
    if (!this.hasLeft) this.#joined('leave').leave();
  }

  /** Ends this process's membership, and the workers of the loader. Not collective. Idempotent. */
  async close(): Promise<void> {
    this.#closed.abort(joinCancelled());
    await this.#views?.close();
    if (this.#trained === null) return;
    this.#trained.parts.model.close();
    await this.#trained.parts.loader.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #join<M extends GradParamSource>(
    source: M,
    options: ElasticDdpOptions,
  ): Promise<DistributedDataParallel<M>> {
    const { optimizer, loader, scaler = null, generators = [], extra = {}, tensor, ...others } = options;
    const { syncBatchNorm = false, ...rest } = others;
    const group = soloGroup();
    if (syncBatchNorm) {
      await convertSyncBatchNorm(source as unknown as ModuleTree, group); // rebind() makes the exchanges of a view
      loader.runTogether();
    }
    const model = await ddp(source, { ...rest, group });
    try {
      const trained = new Trained({
        ...{ source, optimizer, loader, scaler, generators, extra },
        hook: rest.hook?.shared ?? null,
        model: model as unknown as DistributedDataParallel<GradParamSource>,
        revive: tensor,
      });
      const description = describeTraining(trained.parts, others);
      const tell = (change: ViewChange) => {
        for (const listener of this.#listeners) listener(change);
      };
      this.#views = new Views(this.#settings, trained, description, tell, this.#closed.signal);
      await this.#views.join();
      this.#trained = trained;
    } catch (error) {
      this.#views = null;
      model.close();
      throw error;
    }
    await this.#views.enter();
    return model;
  }

  /** Runs one step until it is final. */
  async #run<B>(trained: Trained, fn: StepFunction<B>, { beforeUpdate }: RunOptions): Promise<StepResult> {
    this.#checkOpen('run');
    const { loader } = trained.parts;
    const views = this.#views!;
    for (;;) {
      await views.enter();
      const membership = views.membership!;
      const { group } = membership;
      const plan = loader.plan();
      trained.begin();
      let done: Attempt | null = null;
      let vote: Vote;
      try {
        done = await attempt(trained.parts, plan, group, fn);
        const { finalSteps } = trained;
        const ballot = { agreed: [finalSteps, plan.epoch, plan.start, plan.end], finalSteps };
        vote = group.supports.sync ? membership.voteSync(ballot) : await membership.vote(ballot);
      } catch (error) {
        const next = await views.change(error, done !== null);
        if (next.view.finalSteps === trained.finalSteps) {
          trained.undo();
          // The first batch is loaded while the view is entered.
          if (next.group !== null) await loader.restart({ rank: next.group.rank, size: next.group.size });
          continue;
        }
        // The other members can only have applied the averages if all members had them.
        if (done === null) throw missedStep(trained.finalSteps, next.view.finalSteps);
        this.#finish(trained, plan, beforeUpdate);
        return { ...done, ranks: group.size };
      }
      this.#finish(trained, plan, beforeUpdate);
      if (trained.shards !== null || vote.changesView) await this.#afterVote(trained, vote);
      return { ...done, ranks: group.size };
    }
  }

  /** Ends a step whose vote has succeeded. The step stays final even if a rank is lost meanwhile. */
  async #afterVote(trained: Trained, { isLeaving, changesView }: Vote): Promise<void> {
    let error: unknown;
    try {
      await trained.exchange();
      if (changesView) await trained.handOver(this.group, isLeaving);
    } catch (failure) {
      error = failure;
    }
    const views = this.#views!;
    const isBroken = error !== undefined && !views.membership!.isChange(error);
    if (isLeaving && !isBroken) await views.depart();
    else if (changesView || error !== undefined) await views.change(error, false);
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

  #joined(what: string): Membership {
    const membership = this.#views?.membership ?? null;
    if (membership === null && this.hasLeft) throw cameTooLate(what);
    if (membership === null)
      throw jobMisused(what, 'the process joins the job in ddp(); expected that before');
    return membership;
  }

  #checkOpen(what: string): void {
    if (this.#closed.signal.aborted)
      throw jobMisused(
        what,
        'the job was closed in the loop; expected close() after it. To end the loop, call leave()',
      );
  }

  #training(what: string): Trained {
    this.#joined(what);
    return this.#trained!;
  }
}
