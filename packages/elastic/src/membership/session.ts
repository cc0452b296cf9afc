// The membership of a process in a job: the votes of its steps, and the changes of its view.
import type { Group } from '@ringwise/collectives';
import type { Chain } from './chain.ts';
import { changeReason, isMembershipError, rootOf } from './classify.ts';
import { namedBy } from './connect.ts';
import type { Driver, Settled } from './driver.ts';
import * as errors from './errors.ts';
import type { Ballot, Change, Membership, Progress, Vote } from './membership.ts';
import type { Machine, Settings } from './protocol/machine.ts';
import type { Pace } from './protocol/pace.ts';
import type { Member, Report, View, Wish } from './protocol/view.ts';
import { ballotOf, differing, type Tally, tallyOf } from './protocol/voting.ts';

interface Parts {
  readonly self: Wish;
  readonly machine: Machine;
  readonly chain: Chain;
  readonly pace: Pace;
  readonly driver: Driver;
  readonly settings: Settings;
  readonly close: () => Promise<void>;
}

/** Milliseconds that the group of an ended view may take to close. */
const closeMs = 2_000;
/** Number of the lowest ranks that watch for wishes to join; one would suffice. */
const watchingRanks = 3;

export class Session implements Membership {
  readonly self: Member;
  readonly first: Change;
  readonly #parts: Parts;
  #view: View;
  #group: Group;
  #watch = new AbortController();
  /** Whether there is a wish to join that the view has not read. */
  #hasUnreadWish = false;
  #wantsToLeave = false;
  /** Whether this member leaves because a vote has ended its training. */
  #isOver = false;
  /** Whether the running vote includes this member's request to leave. */
  #isAsking = false;
  /** Whether a vote that included this member's request to leave has ended. */
  #isLeaving = false;
  /** This member's knowledge about its steps, for a report at close(). */
  #progress: Progress;
  #isChanging = false;
  #closing: Promise<void> | null = null;

  constructor(parts: Parts, settled: Settled) {
    this.#parts = parts;
    const { view, group } = this.#joined(settled, 'joinMembership');
    this.self = view.members.find(({ id }) => id === parts.self.id)!;
    this.#view = view;
    this.#group = group;
    this.#progress = { finalSteps: view.finalSteps, isComplete: false, hasState: false };
    this.first = this.#begin(view, group);
  }

  get view(): View {
    return this.#view;
  }
  get group(): Group {
    return this.#group;
  }

  readonly vote = async (ballot: Ballot): Promise<Vote> => {
    const values = this.#startVote(ballot);
    await this.#group.allReduce(values, this.#options());
    const at = differing(values);
    if (at !== null) {
      const all = new Float64Array(ballot.agreed.length * this.#group.size);
      await this.#group.allGather(Float64Array.from(ballot.agreed), all);
      throw this.#disagreement(at, all);
    }
    return this.#endVote(tallyOf(values));
  };

  readonly voteSync = (ballot: Ballot): Vote => {
    const values = this.#startVote(ballot);
    this.#group.allReduceSync(values, this.#options());
    const at = differing(values);
    if (at !== null) {
      const all = new Float64Array(ballot.agreed.length * this.#group.size);
      this.#group.allGatherSync(Float64Array.from(ballot.agreed), all);
      throw this.#disagreement(at, all);
    }
    return this.#endVote(tallyOf(values));
  };

  readonly isChange = (error: unknown): boolean => isMembershipError(error, this.#group.failure);

  readonly change = async (progress: Progress, error?: unknown): Promise<Change> => {
    this.#checkOpen('change');
    if (this.#isLeaving) throw errors.hasLeft(this.self.id);
    this.#isChanging = true;
    const old = this.#group;
    const report = this.#endView(progress, error);
    const { machine, driver, pace } = this.#parts;
    // All members of the new view have ended the old one, so its group can be closed while the new one connects.
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= closed(old));
    pace.pause();
    machine.setPatience(pace.patience);
    try {
      const settled = await driver.run({ kind: 'ended', report }, close);
      const { view, group } = this.#joined(settled, 'change');
      await close();
      this.#view = view;
      this.#group = group;
      const finalSteps = progress.hasState ? view.finalSteps : progress.finalSteps;
      this.#progress = { finalSteps, isComplete: false, hasState: progress.hasState };
      return this.#begin(view, group);
    } catch (failure) {
      await this.#abandon(old);
      throw failure;
    } finally {
      this.#isChanging = false;
    }
  };

  readonly leave = (): void => {
    this.#wantsToLeave = true;
  };

  readonly close = (): Promise<void> => {
    this.#closing ??= this.#close();
    return this.#closing;
  };

  #startVote({ isLeaving = false, agreed, finalSteps = this.#progress.finalSteps }: Ballot): Float64Array {
    this.#checkOpen('vote');
    const areNumbers = Array.isArray(agreed) && agreed.every((each) => Number.isSafeInteger(each));
    if (!areNumbers) throw errors.badAgreed(agreed);
    if (isLeaving) {
      this.#wantsToLeave = true;
      this.#isOver = true;
    }
    this.#isAsking = this.#wantsToLeave;
    this.#progress = { finalSteps, isComplete: true, hasState: true };
    const ballot = { isLeaving: this.#wantsToLeave, isOver: isLeaving, hasUnreadWish: this.#hasUnreadWish };
    return ballotOf({ ...ballot, agreed });
  }

  #options() {
    return { op: 'max', timeoutMs: this.#parts.pace.patience.stallMs } as const;
  }

  #endVote({ changesView, putsOff }: Tally): Vote {
    this.#parts.pace.tick(performance.now());
    this.#isLeaving = this.#isAsking && !putsOff;
    const { finalSteps } = this.#progress;
    this.#progress = { finalSteps: finalSteps + 1, isComplete: false, hasState: true };
    return { changesView, isLeaving: this.#isLeaving };
  }

  #disagreement(at: number, all: Float64Array): Error {
    const { size } = this.#group;
    const count = all.length / size;
    const rows = Array.from({ length: size }, (_, rank) => [
      ...all.subarray(rank * count, (rank + 1) * count),
    ]);
    return errors.disagree(this.#view.number, at, rows);
  }

  #begin(view: View, group: Group): Change {
    this.#hasUnreadWish = false;
    this.#isLeaving = false;
    if (group.rank < watchingRanks) this.#watchWishes(view);
    const joined = view.members.flatMap(({ id }, rank) => (view.joined.includes(id) ? [rank] : []));
    return { view, group, decision: view.decision, joined };
  }

  /** Watches for wishes to join. Ignores failures of the store, without which no process can join. */
  #watchWishes(view: View): void {
    this.#watch.abort();
    const watch = new AbortController();
    this.#watch = watch;
    this.#parts.chain.wished(view, watch.signal).then(
      () => {
        if (!watch.signal.aborted) this.#hasUnreadWish = true;
      },
      () => {},
    );
  }

  /** Aborts the present group, so that other members learn of the failure, and returns the report about it. */
  #endView(progress: Progress, error: unknown): Report {
    this.#watch.abort();
    const { failure } = this.#group;
    const cause = failure ?? error;
    if (failure === null && error !== undefined) this.#group.abort(changeReason(error));
    const root = rootOf(cause);
    const sentence = root === null ? String(cause) : `${root.code} in ${root.verb}`;
    return {
      ...progress,
      member: this.self.id,
      view: this.#view.number,
      wasConnected: true,
      unreachable: namedBy(cause, this.#view, this.self.id),
      isLeaving: false,
      isDone: false,
      failure: cause === undefined ? null : sentence,
    };
  }

  #joined(
    settled: Settled,
    verb: 'change' | 'joinMembership',
  ): { readonly view: View; readonly group: Group } {
    if (!('kind' in settled)) return settled;
    const { self, settings } = this.#parts;
    switch (settled.kind) {
      case 'left out':
        throw errors.leftOut(self.id, settled.view.number, settled.view.members.length);
      case 'job ended':
        throw new errors.JobEndedError(verb, settled.view, this.#parts.driver.lostStore);
      case 'too few':
        throw settled.isFounding
          ? errors.tooFew(settled.present, settings.min, settings.joinTimeoutMs)
          : errors.notAdmitted(self.id, settled.present, settings.joinTimeoutMs);
    }
  }

  #checkOpen(verb: string): void {
    if (this.#closing !== null) throw errors.misused(verb, 'this member has closed its membership');
    if (this.#isChanging) throw errors.misused(verb, 'a change of the view is under way; await it first');
  }

  async #abandon(group: Group): Promise<void> {
    this.#closing ??= (async () => {
      this.#stop();
      await closed(group);
      await this.#parts.close();
    })();
    await this.#closing;
  }

  async #close(): Promise<void> {
    const { chain } = this.#parts;
    this.#stop();
    const cause = this.#group.failure;
    const isOver = this.#isOver || !this.#wantsToLeave;
    const report: Report = {
      ...this.#progress,
      member: this.self.id,
      view: this.#view.number,
      wasConnected: true,
      unreachable: [],
      isLeaving: true,
      isDone: cause === null && isOver && this.#progress.hasState && !this.#progress.isComplete,
      failure: cause === null ? null : `${cause.code} in ${cause.verb}`,
    };
    try {
      // The report tells the other members not to wait for this one, and whether its last step was final.
      await chain.report(report).catch(() => {});
      await closed(this.#group);
    } finally {
      await this.#parts.close();
    }
  }

  #stop(): void {
    this.#watch.abort();
    this.#parts.driver.stop();
  }
}

/** Closes a group that may have failed. Ignores its errors, which its operations have reported. */
async function closed(group: Group): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, closeMs);
  });
  await Promise.race([group.close().catch(() => {}), late]);
  clearTimeout(timer);
}
