// Takes a process through the views of its job: it joins, enters each view, and leaves. It enters a view in three
// parts, in this order on all members: the model gets the view's group for its averages, members without the state get
// it, and the loader begins at the cursor. If another rank is lost meanwhile, this begins again in the next view.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Group } from '@ringwise/collectives';
import {
  behind,
  joinsWithPause,
  LearnerBehind,
  missedStep,
  rescued,
  rescueFailed,
  rescueMissing,
  rescueOnDevice,
  rescueSharded,
} from '../errors.ts';
import { type Learned, Learner } from '../learners/learner.ts';
import { Sources } from '../learners/sources.ts';
import type { Chain } from '../membership/chain.ts';
import { isOver, JobEndedError } from '../membership/errors.ts';
import type { JobAccess } from '../membership/join.ts';
import type { Change, Membership } from '../membership/membership.ts';
import type { View } from '../membership/protocol/view.ts';
import { transfer } from '../transfer/transfer.ts';
import { checkSameTraining } from './description.ts';
import { entryOf, type LogTarget, writeLog } from './log.ts';
import { loadRescue, rescueFile, writeRescue } from './rescue.ts';
import type { Trained } from './trained.ts';

/** A change of the view, as onView() reports it. */
export interface ViewChange {
  /** Number of the view. */
  readonly view: number;
  /** Number of ranks in the view. */
  readonly size: number;
  /** Number of ranks in the previous view; 0 for the first view. */
  readonly was: number;
  /** Ids of members that joined. */
  readonly joined: readonly string[];
  /** Ids of members that were lost. */
  readonly lost: readonly string[];
  /** Ids of members that left after their last step. */
  readonly left: readonly string[];
  /** Number of steps that are final. */
  readonly step: number;
  /** The transfer of the state to the members that joined; null if none joined, or if the job begins with this view. */
  readonly state: StateTransfer | null;
}

/** How the state of the training was sent to members that joined. */
export interface StateTransfer {
  /** Bytes of the whole state. */
  readonly bytes: number;
  /** Bytes that were sent to each of them while the others waited. */
  readonly sentBytes: number;
  /** Number of members that sent them. */
  readonly sources: number;
  /**
   * Data that this process received as a learner before it joined; null if it did not join in this view as a learner.
   */
  readonly learned: Learned | null;
}

/** Smaller parameters are sent while the others wait: that takes less time than connecting to a learner. */
const learnedBytes = 4 << 20;

/** Milliseconds to wait until the first rank of a new job has written its description of the training. */
const describedMs = 10_000;

export interface JobSettings {
  readonly join: (prepare: (access: JobAccess) => Promise<void>) => Promise<Membership>;
  /** Whether this process gets the state before it joins; null if the size of the state decides. */
  readonly learn: boolean | null;
  readonly log: LogTarget | null;
  readonly leaveOn: NodeJS.Signals | null;
  readonly rescueFolder: string | null;
}

export class Views {
  readonly #settings: JobSettings;
  readonly #trained: Trained;
  /** Description of this process's training, for processes that join later. */
  readonly #description: string;
  readonly #tell: (change: ViewChange) => void;
  #membership: Membership | null = null;
  /** A change of the view that this member has begun to apply and not completed. */
  #pending: Change | null = null;
  /**
   * The error with the last view of an ended job. The step that this view makes final is applied before the loop ends.
   */
  #ended: JobEndedError | null = null;
  /** Number of steps in the state that this process has read from the rescue folder. */
  #rescuedSteps = 0;
  #hasState = false;
  #hasLeft = false;
  #size = 0;
  #stopListening: (() => void) | null = null;
  #learner: Learner | null = null;
  #sources: Sources | null = null;
  #access: JobAccess | null = null;
  readonly #closed: AbortSignal;

  /**
   * `tell` receives each change of the view when all members have the state. `closed` stops a process that has not
   * joined yet.
   */
  constructor(
    settings: JobSettings,
    trained: Trained,
    description: string,
    tell: (change: ViewChange) => void,
    closed: AbortSignal,
  ) {
    const { rescueFolder } = settings;
    if (rescueFolder !== null && trained.isFar) throw rescueOnDevice();
    if (rescueFolder !== null && trained.shards !== null) throw rescueSharded();
    this.#settings = settings;
    this.#trained = trained;
    this.#description = description;
    this.#tell = tell;
    this.#closed = closed;
  }

  /** Null until the process has joined. */
  get membership(): Membership | null {
    return this.#membership;
  }

  /** Whether this process has left the job, or was started when the training was over. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Joins the job without entering the first view. If the training is over, resolves without joining: see hasLeft. */
  async join(): Promise<void> {
    const { rescueFolder } = this.#settings;
    if (rescueFolder !== null) this.#rescuedSteps = await loadRescue(rescueFolder, this.#trained);
    try {
      this.#membership = await this.#settings.join((access) => this.#prepare(access));
      if (this.#closed.aborted) await this.#membership.close();
      this.#closed.throwIfAborted();
    } catch (error) {
      await this.#learner?.close();
      await this.#sources?.close();
      if (!isOver(error)) throw error;
      this.#comeTooLate(error);
      return;
    }
    this.#listen();
    this.#pending = this.#membership.first;
  }

  /**
   * Enters the view that has been decided. Does nothing if there is none. Throws the error with which the job has
   * ended, unless this process never had the state: then it has left.
   */
  async enter(): Promise<void> {
    const trained = this.#trained;
    if (this.#ended !== null) throw await this.#rescue(this.#ended);
    for (let change = this.#pending; change !== null; change = this.#pending) {
      const { view, group } = change;
      let state: StateTransfer | null;
      try {
        if (this.#hasState) this.#sources?.enter(view);
        const learned = (await this.#learner?.settle()) ?? null;
        await trained.parts.model.rebind(group);
        await trained.shards?.repair(group, withoutState(change));
        state = await this.#share(change, learned);
        await trained.shards?.rebind(group);
        await trained.parts.loader.restart({ rank: group.rank, size: group.size });
        this.#pending = null;
      } catch (error) {
        await this.change(error, false);
        if (this.#ended === null) continue;
        if (this.#hasState || !isOver(this.#ended)) throw await this.#rescue(this.#ended);
        this.#comeTooLate(this.#ended);
        await this.close();
        return;
      }
      const was = this.#size;
      this.#size = group.size;
      // Errors are ignored: the training does not need the description, and a later view writes it again, also to a new
      // store.
      if (group.rank === 0) this.#access?.chain.describe(this.#description).catch(() => {});
      const { joined, lost, left } = view;
      const { finalSteps } = trained;
      writeLog(this.#settings.log, entryOf(view, finalSteps), group.rank === 0);
      this.#tell({ view: view.number, size: group.size, was, joined, lost, left, step: finalSteps, state });
    }
  }

  /**
   * Ends the present view. Resolves with the next view, which enter() enters, or with the last view of an ended job,
   * which has no group. Throws `error` if it is no change of the membership; the other ranks then end, too.
   */
  async change(error: unknown, isComplete: boolean): Promise<{ view: View; group: Group | null }> {
    const membership = this.#membership!;
    if (error !== undefined && !membership.isChange(error)) {
      membership.group.abort(error);
      throw error;
    }
    const progress = { finalSteps: this.#trained.finalSteps, isComplete, hasState: this.#hasState };
    try {
      this.#pending = await membership.change(progress, error);
      return this.#pending;
    } catch (failure) {
      if (!(failure instanceof JobEndedError)) throw failure;
      this.#ended = failure;
      this.#pending = null;
      return { view: failure.view, group: null };
    }
  }

  /** Leaves the job after a step. */
  async depart(): Promise<void> {
    this.#hasLeft = true;
    await this.close();
  }

  /** Ends this process's membership in the job. Idempotent. */
  async close(): Promise<void> {
    this.#stopListening?.();
    this.#stopListening = null;
    await this.#sources?.close();
    await this.#membership?.close();
  }

  /** Prepares this process before the members know of it. Rejects if its description differs from theirs. */
  async #prepare(access: JobAccess): Promise<void> {
    this.#access = access;
    const theirs = await trainingOf(access.chain, this.#closed);
    if (theirs !== null) checkSameTraining(this.#description, theirs);
    await this.#learn(access);
  }

  /** Gets the state before this process joins, if members train and the state is large enough. */
  async #learn(access: JobAccess): Promise<void> {
    const trained = this.#trained;
    if (trained.wholeOptimizer === null) return; // no member has all that a learner needs
    this.#sources = new Sources(access, trained);
    const { learn } = this.#settings;
    if (!(learn ?? trained.parameterBytes >= learnedBytes)) return;
    this.#learner = new Learner(access, trained);
    try {
      await this.#learner.run(this.#closed);
    } catch (error) {
      if (!(error instanceof LearnerBehind)) throw error;
      if (learn === true) throw behind(error);
      // Join nevertheless: an additional rank is worth the pause of the others.
      process.emitWarning(joinsWithPause(error), { code: 'RINGWISE_JOIN_PAUSE' });
      await this.#learner.close();
      this.#learner = null;
    }
  }

  /** Sends the state to members that have none. In a new job, sends the state of rank 0. */
  async #share(change: Change, learned: Learned | null): Promise<StateTransfer | null> {
    const { group, joined, view } = change;
    const trained = this.#trained;
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

  /** Saves the state of a job that has ended, on one of its last members. Returns an error that reports the file. */
  async #rescue(failure: JobEndedError): Promise<Error> {
    const { rescueFolder: folder } = this.#settings;
    const { members, joined, finalSteps } = failure.view;
    const writer = members.find(({ id }) => !joined.includes(id))?.id;
    if (folder === null || writer === undefined || !this.#hasState || this.#trained.finalSteps !== finalSteps)
      return failure;
    try {
      const file = rescueFile(folder, finalSteps);
      if (writer === this.#membership!.self.id) await writeRescue(folder, this.#trained);
      return rescued(failure, finalSteps, file, writer);
    } catch (error) {
      return rescueFailed(failure, folder, error);
    }
  }

  /** Records, and warns the user, that the training was over before this process had its state. */
  #comeTooLate({ view }: JobEndedError): void {
    this.#hasLeft = true;
    const text = `ddp: ${view.ended}. This process takes no part in it. A new job needs another run id.`;
    process.emitWarning(text, { code: 'RINGWISE_TRAINING_OVER' });
  }

  /** Makes the process leave at the signal. A second signal has its usual effect. */
  #listen(): void {
    const { leaveOn } = this.#settings;
    if (leaveOn === null) return;
    const leave = () => this.#membership!.leave();
    process.once(leaveOn, leave);
    this.#stopListening = () => void process.off(leaveOn, leave);
  }
}

/** Returns the members' description; null if the job has no members, or if none has written it within describedMs. */
async function trainingOf(chain: Chain, signal: AbortSignal): Promise<string | null> {
  for (const endMs = performance.now() + describedMs; ; await sleep(100, undefined, { signal })) {
    const training = await chain.training();
    if (training !== null || (await chain.head()) === null || performance.now() > endMs) return training;
  }
}

/** Returns the ranks that get the state from the others: in a new job, all but the first. */
const withoutState = ({ group, joined }: Change): readonly number[] =>
  joined.length === group.size ? joined.slice(1) : joined;
