// Gets the state of the training for a process that wants to join a job, while the members continue training. The
// process is not a member yet, so its failure does not stop them. When it has the state after their last step, it asks
// to join, and continues to apply their steps until it is a member.
import { setTimeout as sleep } from 'node:timers/promises';
import type { PackedState } from '@ringwise/ddp';
import { ElasticError, LearnerBehind, notCaughtUp } from '../errors.ts';
import type { Trained } from '../job/trained.ts';
import { notAdmitted } from '../membership/errors.ts';
import type { JobAccess } from '../membership/join.ts';
import { hasEnded } from '../membership/processes.ts';
import type { Member, View } from '../membership/protocol/view.ts';
import { Attempt } from './attempt.ts';
import { candidates } from './candidates.ts';
import { prepare } from './prepare.ts';

/** Interval in milliseconds at which a learner checks whether the members train. */
const watchMs = 500;
/**
 * If a view ended this many milliseconds ago and there is no next one, the members wait for other processes, so that a
 * joining process does not delay them.
 */
const haltMs = 2_000;
const retryMs = 200;

/** The data that a learner received before it joined. */
export interface Learned {
  /** Number of steps that it has applied. */
  readonly steps: number;
  /** Bytes received while the others continued training: a copy of the state, and the gradients of these steps. */
  readonly bytes: number;
  /** Bytes of arrays that differed from the members' when checksums were last compared. */
  readonly differingBytes: number;
  /** Number of members that sent them. */
  readonly sources: number;
}

const isTimeout = (error: unknown) => error instanceof Error && error.name === 'TimeoutError';

/** Thrown when the members do not train, so that this process need not get the state in advance. */
class Halted extends Error {}

export class Learner {
  readonly #access: JobAccess;
  readonly #trained: Trained;
  #attempt: Attempt | null = null;
  /** Whether a connection to the members has ever succeeded. */
  #hasConnected = false;
  /** The view whose end was seen first at `sinceMs`. */
  #ended: { readonly view: number; readonly sinceMs: number } | null = null;

  constructor(access: JobAccess, trained: Trained) {
    this.#access = access;
    this.#trained = trained;
  }

  /**
   * Resolves when this process may ask to join: it has the state, or no member trains. Rejects with LearnerBehind if
   * the members train faster than it applies their steps, with ERR_ELASTIC_STATE if the state does not fit this
   * process, with ERR_ELASTIC_TOO_FEW after `joinTimeoutMs`, and with the reason of `signal`.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { chain, self, joinTimeoutMs } = this.#access;
    const beganMs = performance.now();
    for (;;) {
      signal.throwIfAborted();
      const view = await chain.head();
      if (view === null || view.ended !== null || (await this.#isHalted(view))) return;
      const members = candidates(view, self, await this.#lost(view.members));
      if (members.length === 0 || !this.#trained.canBeFollowed) return;
      const leftMs = joinTimeoutMs - (performance.now() - beganMs);
      if (leftMs <= 0)
        throw this.#hasConnected
          ? notCaughtUp(joinTimeoutMs)
          : notAdmitted(self.id, view.members.length, joinTimeoutMs);
      try {
        const late = AbortSignal.timeout(Math.ceil(leftMs));
        const isOneHost = view.members.every(({ host }) => host === self.host);
        return await this.#try(members, isOneHost, AbortSignal.any([signal, late]));
      } catch (error) {
        if (error instanceof Halted) return;
        if (ElasticError.is(error) || error instanceof LearnerBehind) throw error;
        signal.throwIfAborted();
        if (isTimeout(error)) throw notCaughtUp(joinTimeoutMs);
        await sleep(retryMs, undefined, { signal });
      }
    }
  }

  /**
   * Resolves when this process has applied the last step before the view of which it is a member, or when a source is
   * lost. Returns a report on the received data; null if it received nothing before it joined.
   */
  async settle(): Promise<Learned | null> {
    const attempt = this.#attempt;
    if (attempt === null) return null;
    await attempt.over();
    const { replica, sources } = attempt;
    if (replica === null) return null;
    const { step, at, bytes, differingBytes } = replica;
    return { steps: step - at, bytes, differingBytes, sources };
  }

  /** Returns the received state itself, not a copy; null if there is none. */
  held(): PackedState | null {
    return this.#attempt?.replica?.held() ?? null;
  }

  async close(): Promise<void> {
    prepare(0);
    await this.#attempt?.close();
  }

  async #try(members: readonly Member[], isOneHost: boolean, signal: AbortSignal): Promise<void> {
    const attempt = new Attempt(this.#access, this.#trained);
    const watch = new AbortController();
    const ended = AbortSignal.any([signal, watch.signal]);
    this.#watch(ended, (reason) => watch.abort(reason));
    try {
      // Only now, when the groups of the attempt exist: otherwise one of them would use the prepared memory.
      await attempt.run(members, ended, () => {
        if (isOneHost) prepare(this.#trained.bucketBytes);
      });
      this.#attempt = attempt;
    } finally {
      this.#hasConnected ||= attempt.sources > 0;
      watch.abort(new Error('the attempt has ended'));
    }
  }

  /** Calls `stop` when the members no longer train, or the store fails. */
  #watch(signal: AbortSignal, stop: (reason: unknown) => void): void {
    const look = async () => {
      for (;;) {
        await sleep(watchMs, undefined, { signal });
        const view = await this.#access.chain.head();
        if (view === null || view.ended !== null || (await this.#isHalted(view))) return stop(new Halted());
      }
    };
    look().catch(stop);
  }

  async #isHalted({ number }: View): Promise<boolean> {
    if (!(await this.#access.chain.hasReports(number))) {
      this.#ended = null;
      return false;
    }
    if (this.#ended?.view !== number) this.#ended = { view: number, sinceMs: performance.now() };
    return performance.now() - this.#ended.sinceMs >= haltMs;
  }

  /** Returns the ids of members whose processes have ended for certain. */
  async #lost(members: readonly Member[]): Promise<ReadonlySet<string>> {
    const { chain, self } = this.#access;
    const ended = await chain.ended(members.map(({ id }) => id));
    const dead = members.filter(({ host, process }) => host === self.host && hasEnded(process));
    return new Set([...ended, ...dead.map(({ id }) => id)]);
  }
}
