// Decides for all hosts of an elastic job. Unlike in Coordinator, the end of a rank stops no other: only its slot is
// started again. Like it, this is a pure state machine: reports, views and the time go in, orders come out.
//
//   gathering ──enough hosts──▶ running ──all living ranks have ended with 0──▶ finished
//                                  └──nothing helps any more──▶ ending ──all have ended──▶ finished

import type { RankOutcome } from '../../agent/rank-process.ts';
import { culpritOf } from '../../report/culprit.ts';
import { isSecondary } from '../../report/last-words.ts';
import { ending, exitCodeOf, failureReport, rootCause } from '../../report/report.ts';
import type { CoordinatorOptions, Decider } from '../coordinator.ts';
import { inOrder, twinOf } from '../hosts.ts';
import {
  failed,
  finish,
  fromSent,
  type Member,
  type Outcome,
  type Report,
  type Send,
  stoppedBy,
} from '../messages.ts';
import * as words from '../outcomes.ts';
import { maxRepeats, RepeatedFailures } from './repeated-failures.ts';
import { forgetRestarts, isDone, memberOf, type Slot, SlotTable, scheduleRestart } from './slots.ts';
import type { ViewFacts } from './view-facts.ts';

export interface ElasticLimits {
  /** The minimum number of ranks with which the job continues. It has at most `maxRanks`. */
  readonly minRanks: number;
  readonly maxRanks: number;
}

export type ElasticOptions = CoordinatorOptions & ElasticLimits;

interface Host {
  readonly member: Member;
  leaving: NodeJS.Signals | null;
}

/** Milliseconds after which a process that is not in the new view is killed. */
const leftOutMs = 5_000;
/** Milliseconds within which a view that was written before the end of a process arrives from the store. */
const viewDelayMs = 1_000;

export class ElasticCoordinator implements Decider {
  readonly #options: ElasticOptions;
  readonly #send: Send;
  /** Hosts in order of arrival. */
  readonly #hosts = new Map<string, Host>();
  readonly #slots = new SlotTable();
  readonly #repeats = new RepeatedFailures();
  /** Processes that are no longer in the latest view, and the time at which they are killed. */
  readonly #leftOut = new Map<string, number>();
  /** Processes that have been in a view, except those that were lost from it while the others continued training. */
  readonly #members = new Set<string>();
  #phase: 'gathering' | 'running' | 'ending' | 'finished' = 'gathering';
  #view: ViewFacts | null = null;
  /** The last view that did not end the job: its members have trained to the end. */
  #lastTraining: ViewFacts | null = null;
  /** Outcomes of failed processes, by id. */
  readonly #failures = new Map<string, RankOutcome>();
  /** Time at which the job finishes although a member seems to have failed after its last step. */
  #finishMs = Number.POSITIVE_INFINITY;
  #startedMs = 0;
  /** Time at which too few hosts or ranks end the job, or, in phase 'ending', at which the ranks are stopped. */
  #deadlineMs: number;
  #stoppedMs = Number.POSITIVE_INFINITY;
  /** The outcome of the job; null while it ends by a failure whose root cause is not known yet. */
  #outcome: Outcome | null = null;
  /** The failure that ends a job before its first view, unless another one turns out to be its root cause. */
  #firstFailure: RankOutcome | null = null;

  /** Times are milliseconds on one monotonic clock, the clock of rank failures. */
  constructor(options: ElasticOptions, nowMs: number, send: Send) {
    this.#options = options;
    this.#send = send;
    this.#deadlineMs = nowMs + options.joinTimeoutMs;
  }

  get isFinished(): boolean {
    return this.#phase === 'finished';
  }

  get present(): readonly string[] {
    return [...this.#hosts.keys()];
  }

  get deadlineMs(): number {
    const starts = this.#phase === 'running' ? this.#waiting.map(({ startMs }) => startMs) : [];
    return Math.min(this.#deadlineMs, this.#finishMs, ...starts, ...this.#leftOut.values());
  }

  handle(report: Report, nowMs: number): void {
    if (report.kind === 'join') this.#join(report.member, nowMs);
    else if (report.kind !== 'clock') this.#handleFrom(report, nowMs);
  }

  #handleFrom(report: Exclude<Report, { kind: 'join' | 'clock' }>, nowMs: number): void {
    const host = this.#hosts.get(report.id);
    if (!host) {
      if (report.kind !== 'bye') this.#send(report.id, finish(failed(words.givenUp)));
    } else if (report.kind === 'bye') {
      this.#remove(host);
      this.#conclude(nowMs);
    } else if (report.kind === 'leaving') {
      this.#leaving(host, report.signal, nowMs);
    } else if (report.kind === 'slot-ended') {
      const slot = this.#slots.all[report.slot];
      if (!slot || slot.host !== report.id || slot.incarnation !== report.incarnation) return;
      this.#slotEnded(host, slot, fromSent(report.outcome), report.step, nowMs);
    }
  }

  /**
   * Notes the latest view of the job's ranks. Processes that were lost from it and still run are killed soon, unless
   * the job ends with this view: such a process may be evaluating or saving after its last step.
   */
  viewed(view: ViewFacts, nowMs: number): void {
    if (this.#view !== null && view.number <= this.#view.number) return;
    this.#view = view;
    for (const id of view.members) this.#members.add(id);
    if (view.ended === null) this.#goesOn(view, nowMs);
    this.#conclude(nowMs);
  }

  #goesOn(view: ViewFacts, nowMs: number): void {
    this.#lastTraining = view;
    for (const id of view.lost) this.#members.delete(id);
    for (const slot of this.#slots.assigned) {
      const id = memberOf(slot);
      if (slot.state === 'running' && view.lost.includes(id)) this.#leftOut.set(id, nowMs + leftOutMs);
    }
  }

  /** Notes that a launcher is lost. Returns the ids of the processes that were lost with it. */
  lost(id: string, nowMs: number): readonly string[] {
    const host = this.#hosts.get(id);
    if (!host) return [];
    const slots = this.#slots.of(id).map(({ number }) => number);
    const ran = this.#remove(host);
    if (this.#phase === 'ending') this.#conclude(nowMs);
    else if (this.#phase === 'running')
      this.#hasLess(failed(words.hostLost(host.member.host, words.ranks(slots)), id), nowMs);
    return ran;
  }

  tick(nowMs: number): void {
    for (const [id, atMs] of this.#leftOut) if (nowMs >= atMs) this.#kill(id);
    if (this.#phase === 'running')
      for (const slot of this.#waiting) if (nowMs >= slot.startMs) this.#start(slot, nowMs);
    if (nowMs >= this.#finishMs) this.#conclude(nowMs);
    if (nowMs < this.#deadlineMs) return;
    if (this.#phase === 'ending') this.#stopAll(nowMs);
    else if (this.#phase === 'gathering') {
      const names = [...this.#hosts.values()].map(({ member }) => member.host);
      const { minNodes, joinTimeoutMs } = this.#options;
      this.#finish(failed(words.tooFewHosts(names, minNodes, joinTimeoutMs)));
    } else if (this.#phase === 'running') {
      this.#end(this.#outcome ?? failed(words.tooFewRanks(this.#kept.length, this.#options.minRanks)), nowMs);
    }
  }

  #join(member: Member, nowMs: number): void {
    if (this.#phase === 'finished' || this.#phase === 'ending') {
      this.#send(member.id, finish(failed(words.tooLate)));
      return;
    }
    const twin = twinOf(this.#hosts.values(), member);
    if (twin) {
      this.#send(member.id, finish(failed(words.hostTwice(member, twin.member))));
      return;
    }
    this.#hosts.set(member.id, { member, leaving: null });
    if (this.#phase === 'running') this.#assignSlots(nowMs);
    else this.#tryBegin(nowMs);
  }

  /** Starts the job if there are enough hosts and ranks. Hosts that arrive later join the running job. */
  #tryBegin(nowMs: number): void {
    const { self, minNodes, maxNodes, minRanks } = this.#options;
    const hosts = [...this.#hosts.values()];
    const ranks = hosts.reduce((sum, { member }) => sum + member.nproc, 0);
    if (hosts.length < minNodes || ranks < minRanks) {
      if (this.#hosts.has(self)) {
        this.#send(self, { kind: 'wait', text: words.waiting(hosts.length, minNodes, maxNodes, null) });
      }
      return;
    }
    this.#phase = 'running';
    this.#startedMs = nowMs;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#assignSlots(nowMs);
  }

  /** Assigns slots to hosts that have none, in the order of their numbers or of their arrival, and starts them. */
  #assignSlots(nowMs: number): void {
    const { self, maxRanks } = this.#options;
    const without = [...this.#hosts.values()].filter(
      ({ member, leaving }) => leaving === null && this.#slots.of(member.id).length === 0,
    );
    for (const { member } of inOrder(without, self)) {
      const assigned = this.#slots.assign(member.id, member.nproc, maxRanks, nowMs);
      if (assigned.length === 0) this.#send(member.id, { kind: 'wait', text: words.reserve(maxRanks) });
    }
    for (const slot of this.#waiting) if (nowMs >= slot.startMs) this.#start(slot, nowMs);
    if (this.#kept.length < this.#options.minRanks) return;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#outcome = null;
  }

  #start(slot: Slot, nowMs: number): void {
    if (slot.outcome !== null) slot.incarnation++;
    slot.state = 'running';
    slot.startedMs = nowMs;
    const hosts = [...new Set(this.#slots.assigned.map(({ host }) => host!))];
    this.#send(slot.host!, {
      kind: 'slot',
      slot: slot.number,
      incarnation: slot.incarnation,
      localRank: slot.localRank,
      localWorldSize: this.#slots.of(slot.host!).length,
      worldSize: this.#slots.all.length,
      groupRank: hosts.indexOf(slot.host!),
      groupWorldSize: hosts.length,
      why:
        slot.outcome &&
        words.slotAgain(slot.number, ending(slot.outcome), slot.restarts, this.#options.maxRestarts),
    });
  }

  #slotEnded(host: Host, slot: Slot, outcome: RankOutcome, step: number | null, nowMs: number): void {
    this.#leftOut.delete(memberOf(slot));
    slot.outcome = outcome;
    if (isDone(outcome)) slot.state = 'finished';
    else if (this.#phase !== 'running' || host.leaving) slot.state = 'stopped';
    else {
      // A process that was killed because it was left out counts as stopped, so it has no time of failure of its own.
      slot.outcome = { ...outcome, failedNs: outcome.failedNs ?? BigInt(Math.round(nowMs * 1e6)) };
      this.#slotFailed(slot, slot.outcome, step, nowMs);
    }
    if (host.leaving && this.#phase === 'running') this.#tryLeave(host, nowMs);
    this.#conclude(nowMs);
  }

  /** Decides whether the slot of a process that has failed is started again. */
  #slotFailed(slot: Slot, outcome: RankOutcome, step: number | null, nowMs: number): void {
    slot.state = 'stopped';
    this.#failures.set(memberOf(slot), outcome);
    if (this.#view === null) {
      this.#settle(outcome, nowMs);
      return;
    }
    const { maxRestarts } = this.#options;
    forgetRestarts(slot, nowMs);
    const atStep = Math.max(step ?? 0, this.#view.finalSteps);
    const repeats = this.#repeats.count(outcome, atStep);
    const why =
      this.#view.ended !== null
        ? this.#view.ended
        : !this.#hasState
          ? words.stateLost
          : repeats >= maxRepeats
            ? words.repeated(repeats, atStep)
            : slot.restarts >= maxRestarts
              ? words.restartsUsed(maxRestarts)
              : null;
    // If the ranks themselves have ended the job, one that failed before the others is the cause.
    const down = this.#slots.assigned.flatMap(({ state, outcome: last }) =>
      last !== null && (state === 'waiting' || state === 'stopped') ? last : [],
    );
    const single = why === words.stateLost ? this.#causeOf(outcome) : outcome;
    const root = this.#view.ended === null ? single : (rootCause(down) ?? outcome);
    if (why !== null) this.#end(this.#blame(root, why), nowMs);
    else scheduleRestart(slot, nowMs);
  }

  /**
   * Returns the root cause of a rank's failure: its own failure, or, if it failed only because a peer had, the latest
   * failure that was not secondary. The slot of that peer may have been started again meanwhile.
   */
  #causeOf(outcome: RankOutcome): RankOutcome {
    if (!isSecondaryEnd(outcome)) return outcome;
    const causes = this.#slots.assigned
      .flatMap(({ outcome: last }) => last ?? [])
      .filter((last) => last.failedNs !== null && !isSecondaryEnd(last))
      .toSorted((a, b) => Number(b.failedNs! - a.failedNs!));
    return causes[0] ?? outcome;
  }

  /**
   * Ends a job that has no view yet, as a failure ends a job without elastic mode: waits a short time for the report of
   * the root cause.
   */
  #settle(outcome: RankOutcome, nowMs: number): void {
    this.#phase = 'ending';
    this.#outcome = null;
    this.#firstFailure = outcome;
    const { secondaryMs, causeMs } = this.#options.settle;
    this.#deadlineMs = nowMs + (isSecondaryEnd(outcome) ? secondaryMs : causeMs);
  }

  #leaving(host: Host, signal: NodeJS.Signals, nowMs: number): void {
    host.leaving ??= signal;
    const outcome = stoppedBy(host.leaving, host.member.id);
    if (host.member.id === this.#options.self && this.#phase !== 'ending') {
      if (this.#phase === 'gathering') this.#finish(outcome);
      else this.#end(outcome, nowMs);
    } else this.#tryLeave(host, nowMs);
    this.#conclude(nowMs);
  }

  /** Removes a host that leaves, once all its ranks have ended. */
  #tryLeave(host: Host, nowMs: number): void {
    const { id } = host.member;
    if (this.#slots.of(id).some(({ state }) => state === 'running')) return;
    const outcome = stoppedBy(host.leaving!, id);
    this.#remove(host);
    this.#send(id, finish(outcome));
    if (this.#phase === 'running') this.#hasLess(outcome, nowMs);
  }

  /** Continues after a host has left, waits for another one if there are too few ranks, or ends the job. */
  #hasLess(outcome: Outcome, nowMs: number): void {
    const { minRanks, minNodes, maxNodes, joinTimeoutMs } = this.#options;
    this.#assignSlots(nowMs);
    const hasState = this.#view !== null && this.#hasState;
    if (hasState && this.#kept.length >= minRanks) return;
    if (!hasState || maxNodes === 1) {
      this.#end(outcome, nowMs);
      return;
    }
    this.#outcome = outcome;
    this.#deadlineMs = Math.min(this.#deadlineMs, nowMs + joinTimeoutMs);
    const text = words.waiting(
      this.#hosts.size,
      Math.max(minNodes, this.#hosts.size + 1),
      maxNodes,
      outcome.text,
    );
    this.#send(this.#options.self, { kind: 'wait', text });
  }

  /** Whether a rank that has the state of the training still runs. */
  get #hasState(): boolean {
    const members = new Set(this.#view?.members);
    return this.#slots.assigned.some((slot) => slot.state === 'running' && members.has(memberOf(slot)));
  }

  get #waiting(): readonly Slot[] {
    return this.#slots.assigned.filter(({ state }) => state === 'waiting');
  }

  /** Slots that train, have trained to the end, or will be started again. */
  get #kept(): readonly Slot[] {
    return this.#slots.assigned.filter(
      ({ state, host }) => state !== 'stopped' && this.#hosts.get(host!)?.leaving === null,
    );
  }

  #remove(host: Host): readonly string[] {
    const { id } = host.member;
    for (const slot of this.#slots.of(id)) this.#leftOut.delete(memberOf(slot));
    this.#hosts.delete(id);
    return this.#slots.remove(id);
  }

  #kill(id: string): void {
    this.#leftOut.delete(id);
    const slot = this.#slots.assigned.find((each) => memberOf(each) === id);
    if (slot?.state !== 'running') return;
    this.#send(slot.host!, { kind: 'end-slot', slot: slot.number, incarnation: slot.incarnation });
  }

  #blame(root: RankOutcome, why: string | null): Outcome {
    const outcomes = this.#slots.assigned.map(({ outcome, number }) =>
      number === root.rank ? root : (outcome ?? running(number)),
    );
    const startedNs = BigInt(Math.round(this.#startedMs * 1e6));
    const text = failureReport(outcomes, startedNs, root);
    const host = this.#slots.assigned.find(({ number }) => number === root.rank)?.host ?? null;
    return {
      exitCode: exitCodeOf(root),
      text: why === null ? text : `${text}\n  ${why}`,
      blamed: host,
      culprit: culpritOf(root),
    };
  }

  /** Ends the job with this outcome, after all ranks have been stopped. */
  #end(outcome: Outcome, nowMs: number): void {
    this.#phase = 'ending';
    this.#outcome = outcome;
    this.#stopAll(nowMs);
    this.#conclude(nowMs);
  }

  #stopAll(nowMs: number): void {
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#stoppedMs = nowMs;
    this.#leftOut.clear();
    for (const [id, { leaving }] of this.#hosts) if (!leaving) this.#send(id, { kind: 'stop', round: 0 });
  }

  /** Finishes the job if nothing is left to wait for. */
  #conclude(nowMs: number): void {
    if (this.#phase !== 'running' && this.#phase !== 'ending') return;
    const { assigned } = this.#slots;
    const running = assigned.filter(({ state }) => state === 'running');
    if (this.#phase === 'ending') {
      if (running.length === 0) this.#finish(this.#outcome ?? this.#rootCause());
      return;
    }
    if (!assigned.some(({ state }) => state === 'finished')) return;
    // A rank that was started when the last ones had finished has no training to join. A rank that has left the job, or
    // that is not in the view that ended it, may still evaluate or save.
    if (running.some((slot) => this.#view === null || this.#members.has(memberOf(slot)))) return;
    const late = this.#lateFailure;
    if (late === null) this.#finish({ exitCode: 0, text: null, blamed: null });
    else if (nowMs >= this.#finishMs) this.#finish(this.#blame(late, words.failedAfterTraining));
    else this.#finishMs = Math.min(this.#finishMs, nowMs + viewDelayMs);
  }

  /**
   * The failure of a process after its last step, such as one while it saved the result; null if there is none. Another
   * process in its slot cannot repeat that work. After a failure during training, the others are in a later view.
   */
  get #lateFailure(): RankOutcome | null {
    const failures = this.#lastTraining?.members.flatMap((id) => this.#failures.get(id) ?? []);
    return failures?.[0] ?? null;
  }

  /** Returns the outcome of a job that failed before its first view. */
  #rootCause(): Outcome {
    const outcomes = this.#slots.assigned.flatMap(({ outcome }) => outcome ?? []);
    const early = outcomes.filter(
      ({ failedNs }) => failedNs !== null && Number(failedNs) <= this.#stoppedMs * 1e6,
    );
    return this.#blame(rootCause(early) ?? this.#firstFailure!, null);
  }

  #finish(outcome: Outcome): void {
    this.#phase = 'finished';
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#finishMs = Number.POSITIVE_INFINITY;
    this.#leftOut.clear();
    for (const id of this.#hosts.keys()) this.#send(id, finish(outcome));
  }
}

/** Returns whether a rank failed only because a peer had. */
const isSecondaryEnd = ({ lastWords }: RankOutcome): boolean =>
  lastWords !== null && isSecondary(lastWords.error);

/** Returns a placeholder outcome for a rank that runs and is about to be stopped. */
function running(rank: number): RankOutcome {
  const ended = { exitCode: null, signal: 'SIGTERM' as const, failedNs: null, lastWords: null };
  return { rank, host: '', pid: 0, ...ended, tail: [], logFile: null };
}
