// Decides for all hosts of a job: which hosts take part, when a round of ranks starts and when it must end,
// and whether another round follows. It runs on the launcher that keeps the store. It does not use sockets or
// processes, and knows only its own clock: reports and the time go in, orders come out.
//
//   gathering ──enough hosts──▶ running ──a rank fails, a host comes or goes──▶ stopping ──all have ended──▶ gathering
//                                  └──all ranks ended well──▶ finished ◀──nothing left to try──┘

import type { SettleTimes } from '../agent/agent.ts';
import type { RankOutcome } from '../agent/rank-process.ts';
import { culpritOf } from '../report/culprit.ts';
import { isSecondary } from '../report/last-words.ts';
import { exitCodeOf, failureReport, rootCause } from '../report/report.ts';
import { inOrder, twinOf } from './hosts.ts';
import {
  failed,
  finish,
  fromSent,
  type Member,
  type Outcome,
  type Report,
  type Send,
  stoppedBy,
} from './messages.ts';
import * as words from './outcomes.ts';

export interface CoordinatorOptions {
  /** The launcher that runs the coordinator. It is host 0 if hosts have no given index. */
  readonly self: string;
  readonly minNodes: number;
  readonly maxNodes: number;
  readonly joinTimeoutMs: number;
  readonly lastCallMs: number;
  readonly maxRestarts: number;
  readonly settle: SettleTimes;
}

interface Host {
  readonly member: Member;
  /** State of the host's ranks in the current round; 'idle' if the host is not in it. */
  state: 'idle' | 'running' | 'ended';
  outcomes: readonly RankOutcome[];
  firstRank: number;
  leaving: NodeJS.Signals | null;
  isLost: boolean;
}

/** A coordinator: Coordinator, ElasticCoordinator, or AdmittingCoordinator. */
export interface Decider {
  readonly isFinished: boolean;
  /** Launchers that have not left and are not lost. */
  readonly present: readonly string[];
  /** The time at which tick() must be called; Infinity if none. */
  readonly deadlineMs: number;
  handle(report: Report, nowMs: number): void;
  /** Notes that a launcher is lost because its keep-alive signals have stopped. */
  lost(id: string, nowMs: number): void;
  tick(nowMs: number): void;
}

export class Coordinator implements Decider {
  readonly #options: CoordinatorOptions;
  readonly #send: Send;
  /** Hosts in order of arrival. */
  readonly #hosts = new Map<string, Host>();
  #phase: 'gathering' | 'running' | 'stopping' | 'finished' = 'gathering';
  #round = -1;
  #restarts = 0;
  #members: Host[] = [];
  #startedMs = 0;
  /** Time of the next action without an event in the current phase, in milliseconds on the clock of `nowMs`. */
  #deadlineMs: number;
  /** End of the wait for more hosts; null while there are too few. */
  #lastCallMs: number | null = null;
  #stoppedMs = Number.POSITIVE_INFINITY;
  /** Reason for the start of the current round; null in the first round. */
  #why: { readonly text: string; readonly blamed: string | null } | null = null;

  /** Times are milliseconds on one monotonic clock, the clock of rank failures. */
  constructor(options: CoordinatorOptions, nowMs: number, send: Send) {
    this.#options = options;
    this.#send = send;
    this.#deadlineMs = nowMs + options.joinTimeoutMs;
  }

  get isFinished(): boolean {
    return this.#phase === 'finished';
  }

  /** Launchers that have not left and are not lost. */
  get present(): readonly string[] {
    return [...this.#hosts.keys()];
  }

  /** The time at which tick() must be called; Infinity if none. */
  get deadlineMs(): number {
    if (this.#phase !== 'gathering') return this.#deadlineMs;
    // Once there are enough hosts, only the wait for more has a deadline; the deadline of the job may have passed by
    // then.
    return this.#lastCallMs ?? this.#deadlineMs;
  }

  handle(report: Report, nowMs: number): void {
    if (report.kind === 'join') this.#join(report.member, nowMs);
    else if (report.kind !== 'clock' && report.kind !== 'slot-ended')
      this.#handleFrom(this.#hosts.get(report.id), report, nowMs);
  }

  #handleFrom(
    host: Host | undefined,
    report: Exclude<Report, { kind: 'join' | 'clock' | 'slot-ended' }>,
    nowMs: number,
  ): void {
    if (!host) {
      if (report.kind !== 'bye') this.#send(report.id, finish(failed(words.givenUp)));
    } else if (report.kind === 'bye') {
      this.#hosts.delete(report.id);
    } else if (report.kind === 'leaving') {
      host.leaving ??= report.signal;
      if (host.state === 'idle') this.#leave(host);
      else this.#stop(Math.min(nowMs, Number(report.atNs) / 1e6));
    } else if (report.round === this.#round) {
      if (report.kind === 'ended') this.#ended(host, report.outcomes.map(fromSent), nowMs);
      else this.#settle(report.isSecondary, nowMs);
    }
  }

  /** Notes that a launcher is lost because its keep-alive signals have stopped. */
  lost(id: string, nowMs: number): void {
    const host = this.#hosts.get(id);
    if (!host) return;
    this.#hosts.delete(id);
    host.isLost = true;
    if (!this.#members.includes(host) || host.state === 'idle') return;
    host.state = 'ended';
    this.#stop(nowMs);
    this.#conclude(nowMs);
  }

  tick(nowMs: number): void {
    if (nowMs < this.deadlineMs) return;
    if (this.#phase === 'running') this.#stop(nowMs);
    else if (this.#phase === 'gathering') this.#tryStart(nowMs);
  }

  #join(member: Member, nowMs: number): void {
    if (this.#phase === 'finished') {
      this.#send(member.id, finish(failed(words.tooLate)));
      return;
    }
    const twin = twinOf(this.#hosts.values(), member);
    if (twin) {
      this.#send(member.id, finish(failed(words.hostTwice(member, twin.member))));
      return;
    }
    const host: Host = {
      member,
      state: 'idle',
      outcomes: [],
      firstRank: 0,
      leaving: null,
      isLost: false,
    };
    this.#hosts.set(member.id, host);
    if (this.#phase === 'gathering') {
      this.#tryStart(nowMs);
      if (member.id === this.#options.self && this.#phase === 'gathering') this.#tellWaiting();
    } else if (this.#phase === 'running' && this.#members.length < this.#options.maxNodes) this.#stop(nowMs);
  }

  /**
   * Starts a round if there are enough hosts: the maximum number, or at least the minimum if this is a later
   * round or the wait for more hosts is over.
   */
  #tryStart(nowMs: number): void {
    const { self, minNodes, maxNodes, lastCallMs } = this.#options;
    const candidates = [...this.#hosts.values()].filter(({ leaving }) => leaving === null);
    if (candidates.length < minNodes) {
      this.#lastCallMs = null;
      if (nowMs >= this.#deadlineMs) {
        const names = candidates.map(({ member }) => member.host);
        this.#finish(failed(words.tooFewHosts(names, minNodes, this.#options.joinTimeoutMs)));
      }
      return;
    }
    this.#lastCallMs ??= nowMs + lastCallMs;
    if (candidates.length < maxNodes && this.#round < 0 && nowMs < this.#lastCallMs) return;
    this.#start(inOrder(candidates, self).slice(0, maxNodes), nowMs);
  }

  #start(members: Host[], nowMs: number): void {
    this.#phase = 'running';
    this.#round++;
    this.#members = members;
    this.#startedMs = nowMs;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#lastCallMs = null;
    this.#stoppedMs = Number.POSITIVE_INFINITY;
    let firstRank = 0;
    for (const host of members) {
      Object.assign(host, { state: 'running', outcomes: [], firstRank });
      firstRank += host.member.nproc;
    }
    for (const [groupRank, host] of members.entries()) {
      this.#send(host.member.id, {
        kind: 'start',
        round: this.#round,
        groupRank,
        groupWorldSize: members.length,
        firstRank: host.firstRank,
        worldSize: firstRank,
        why: this.#whyFor(host.member.id),
      });
    }
  }

  #ended(host: Host, outcomes: readonly RankOutcome[], nowMs: number): void {
    host.state = 'ended';
    host.outcomes = outcomes;
    const root = rootCause(outcomes);
    if (root) this.#settle(root.lastWords !== null && isSecondary(root.lastWords.error), nowMs);
    this.#conclude(nowMs);
  }

  /** Notes that a rank has failed. The other ranks have a short time to report their own failures. */
  #settle(isSecondaryFailure: boolean, nowMs: number): void {
    if (this.#phase !== 'running') return;
    const { secondaryMs, causeMs } = this.#options.settle;
    this.#deadlineMs = Math.min(this.#deadlineMs, nowMs + (isSecondaryFailure ? secondaryMs : causeMs));
  }

  /** Stops the ranks of all hosts. `sinceMs` is the time at which the first of them were stopped. */
  #stop(sinceMs: number): void {
    if (this.#phase !== 'running') return;
    this.#phase = 'stopping';
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#stoppedMs = sinceMs;
    for (const { member, state } of this.#members) {
      if (state === 'running') this.#send(member.id, { kind: 'stop', round: this.#round });
    }
  }

  /** Decides how to continue, if all hosts of the round have ended. */
  #conclude(nowMs: number): void {
    if (this.#phase === 'gathering' || this.#phase === 'finished') return;
    if (this.#members.some(({ state }) => state === 'running')) return;
    const isWell = this.#phase === 'running' && this.#members.every((host) => !rootCause(host.outcomes));
    if (isWell) this.#finish({ exitCode: 0, text: null, blamed: null });
    else this.#goOn(nowMs);
  }

  #goOn(nowMs: number): void {
    const outcome = this.#outcome();
    const selfLeaves = this.#members.some(
      ({ member, leaving }) => leaving && member.id === this.#options.self,
    );
    if (outcome && (selfLeaves || this.#restarts >= this.#options.maxRestarts)) {
      this.#finish(outcome);
      return;
    }
    for (const host of this.#members) {
      host.state = 'idle';
      if (!host.leaving) continue;
      this.#hosts.delete(host.member.id);
      this.#send(host.member.id, finish(leaves(host)));
    }
    if (outcome) this.#restarts++;
    const count = `restart ${this.#restarts} of ${this.#options.maxRestarts}`;
    this.#why = {
      text: outcome ? `${count}: ${outcome.text}` : words.grown,
      blamed: outcome?.blamed ?? null,
    };
    this.#phase = 'gathering';
    this.#deadlineMs = nowMs + this.#options.joinTimeoutMs;
    this.#members = [];
    this.#tryStart(nowMs);
    if (this.#phase === 'gathering') this.#tellWaiting();
  }

  /**
   * Returns the reason for a restart in the form for a host: the whole text on the host of the failure and on the host
   * that keeps the store, its first line on others.
   */
  #whyFor(id: string): string | null {
    if (!this.#why) return null;
    const isWhole = id === this.#why.blamed || id === this.#options.self;
    return isWhole ? this.#why.text : this.#why.text.split('\n')[0]!;
  }

  #tellWaiting(): void {
    const { self, minNodes, maxNodes } = this.#options;
    const text = words.waiting(this.#hosts.size, minNodes, maxNodes, this.#why?.text ?? null);
    this.#send(self, { kind: 'wait', text });
  }

  /** Returns the reason for the end of the round; null if it ended only because hosts have joined. */
  #outcome(): Outcome | null {
    const gone = this.#members.find(({ isLost }) => isLost);
    const leaver = this.#members.find(({ leaving }) => leaving);
    const outcomes = this.#members.flatMap((host) => host.outcomes).sort((a, b) => a.rank - b.rank);
    const stoppedNs = this.#stoppedMs * 1e6;
    const startedNs = BigInt(Math.round(this.#startedMs * 1e6));
    const root = rootCause(outcomes);
    // A rank that failed after the stop may have failed because of it, after its peers had ended.
    if (root !== null && !gone && Number(root.failedNs!) <= stoppedNs) {
      return {
        exitCode: exitCodeOf(root),
        text: failureReport(outcomes, startedNs, root),
        blamed: this.#members.find((host) => host.outcomes.includes(root))!.member.id,
        culprit: culpritOf(root),
      };
    }
    if (gone) return failed(words.hostLost(gone.member.host, words.ranks(ranksOf(gone))), gone.member.id);
    return leaver ? leaves(leaver) : null;
  }

  #leave(host: Host): void {
    this.#hosts.delete(host.member.id);
    this.#send(host.member.id, finish(leaves(host)));
    if (host.member.id === this.#options.self) this.#finish(leaves(host));
  }

  #finish(outcome: Outcome): void {
    this.#phase = 'finished';
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    for (const id of this.#hosts.keys()) this.#send(id, { kind: 'finish', outcome });
  }
}

const leaves = ({ leaving, member }: Host): Outcome => stoppedBy(leaving!, member.id);

function ranksOf({ firstRank, member }: Host): number[] {
  return Array.from({ length: member.nproc }, (_, local) => firstRank + local);
}
