// Admits further hosts to an elastic job whose store has moved. It runs on the launcher that serves the new store, and
// only assigns slots to launchers that join: after a move each launcher decides for its own slots (own-slots.ts). Like
// the other coordinators, this is a pure state machine: reports, views and the time are inputs, orders are outputs.

import type { Decider } from '../coordinator.ts';
import { twinOf } from '../hosts.ts';
import { failed, finish, type Member, type Outcome, type Report, type Send, stoppedBy } from '../messages.ts';
import * as words from '../outcomes.ts';
import { slotOf } from './slots.ts';
import type { ViewFacts } from './view-facts.ts';

interface Host {
  readonly member: Member;
  /** Index of the host in the order of arrival at the job; null while it has no slots. */
  groupRank: number | null;
  isLeaving: boolean;
}

/** A slot that this coordinator has assigned to a host. */
interface AssignedSlot {
  readonly number: number;
  /** Id of the launcher; null if it has left or is lost: the next launcher that joins then gets the slot. */
  host: string | null;
  timesAssigned: number;
}

/**
 * Milliseconds for which a slot of another launcher counts towards MAX after its launcher has reported the end of its
 * process, because that launcher may be starting its process again.
 */
const heldMs = 60_000;

/**
 * Milliseconds for which a slot of another launcher counts after it was last in a view, if no such report comes: the
 * launcher is probably lost with its process. It is longer than a launcher needs to find this store (moved-store.ts).
 */
const silentMs = 20_000;

/** Slot numbers that are reserved for each move of the store, if `--elastic MIN:MAX` has no MAX. */
const slotsWithoutMax = 1_000;

/**
 * Number of incarnations that are reserved for each launcher of a slot: it counts them from a start value that it gets
 * with the slot. Two launchers of one slot must not use the same incarnation, because `slot.incarnation` is unique in
 * the job.
 */
const incarnationsEach = 1_000;

export class AdmittingCoordinator implements Decider {
  readonly #maxRanks: number;
  readonly #send: Send;
  readonly #silentMs: number;
  readonly #hosts = new Map<string, Host>();
  readonly #assigned: AssignedSlot[] = [];
  /** The slots of other launchers, and the time until which they count. */
  readonly #held = new Map<number, number>();
  /**
   * First slot number that this coordinator assigns. A process in a slot that another process has would replace that
   * one (membership/decide.ts).
   */
  readonly #firstSlot: number;
  /** Number of hosts so far. */
  #hostCount: number;
  #view: ViewFacts;
  #end: Outcome | null = null;

  /**
   * `view` is the first one that was written in this store. Times are milliseconds on one monotonic clock. `waitMs` is
   * for tests, which need a shorter one.
   */
  constructor(maxRanks: number, view: ViewFacts, send: Send, waitMs = silentMs) {
    this.#maxRanks = maxRanks;
    this.#send = send;
    this.#silentMs = waitMs;
    this.#view = view;
    const slots = slotsOf(view);
    const slotsEach = Number.isFinite(maxRanks) ? maxRanks : slotsWithoutMax;
    this.#firstSlot = Math.max(slotsEach * view.epoch, ...slots.map((slot) => slot + 1));
    this.#hostCount = view.standbys.length;
    for (const slot of slots) this.#held.set(slot, Number.POSITIVE_INFINITY);
  }

  get isFinished(): boolean {
    return this.#end !== null;
  }

  get present(): readonly string[] {
    return [...this.#hosts.keys()];
  }

  get deadlineMs(): number {
    return this.#waiting.length === 0 ? Number.POSITIVE_INFINITY : Math.min(...this.#held.values());
  }

  handle(report: Report, nowMs: number): void {
    if (report.kind === 'join') this.#join(report.member);
    else if (report.kind === 'bye') this.lost(report.id, nowMs);
    else if (report.kind === 'leaving') this.#leaving(report.id, report.signal);
  }

  /** Notes the latest view of the job's ranks. */
  viewed(view: ViewFacts, nowMs: number): void {
    if (view.number <= this.#view.number) return;
    this.#view = view;
    const left = new Set(view.left.map(slotOf));
    const present = new Set(slotsOf(view));
    for (const [slot, untilMs] of this.#held) {
      if (left.has(slot)) this.#held.delete(slot);
      else if (untilMs === Number.POSITIVE_INFINITY) this.#held.set(slot, nowMs + this.#silentMs);
    }
    for (const slot of present)
      if (this.#assignedSlot(slot) === undefined) this.#held.set(slot, Number.POSITIVE_INFINITY);
    this.#assignSlots();
  }

  /** Notes that the launcher of a lost process has reported its end, so that it may start the process again. */
  ended(id: string, nowMs: number): void {
    const untilMs = this.#held.get(slotOf(id));
    if (untilMs !== undefined && untilMs !== Number.POSITIVE_INFINITY)
      this.#held.set(slotOf(id), nowMs + heldMs);
  }

  /** Notes that a launcher has left or is lost, and assigns its slots to a waiting launcher. */
  lost(id: string, nowMs: number): void {
    this.#hosts.delete(id);
    for (const assigned of this.#assigned) if (assigned.host === id) this.#free(assigned, nowMs);
    this.#assignSlots();
  }

  tick(nowMs: number): void {
    for (const [slot, untilMs] of this.#held) if (nowMs >= untilMs) this.#held.delete(slot);
    this.#assignSlots();
  }

  /** Sends the outcome of the job to the launchers that wait for a slot, and to those that join later. */
  finish(outcome: Outcome): void {
    this.#end = outcome;
    for (const { member } of this.#waiting) this.#send(member.id, finish(outcome));
  }

  #join(member: Member): void {
    if (this.#hosts.has(member.id)) return;
    const twin = twinOf(this.#hosts.values(), member);
    if (this.#end !== null || this.#view.ended !== null) this.#send(member.id, finish(failed(words.tooLate)));
    else if (twin) this.#send(member.id, finish(failed(words.hostTwice(member, twin.member))));
    else {
      const host: Host = { member, groupRank: null, isLeaving: false };
      this.#hosts.set(member.id, host);
      this.#assignSlots();
      if (host.groupRank === null)
        this.#send(member.id, { kind: 'wait', text: words.reserve(this.#maxRanks) });
    }
  }

  #leaving(id: string, signal: NodeJS.Signals): void {
    const host = this.#hosts.get(id);
    if (!host) return;
    host.isLeaving = true;
    // A launcher with slots leaves by itself when its ranks have ended.
    if (host.groupRank === null) this.#send(id, finish(stoppedBy(signal, id)));
  }

  /** Assigns slots to launchers that have none, in order of arrival. */
  #assignSlots(): void {
    for (const host of this.#waiting) {
      const count = this.#assigned.filter((assigned) => assigned.host !== null).length;
      const room = Math.max(0, this.#maxRanks - count - this.#held.size);
      if (room > 0) this.#give(host, Math.min(room, host.member.nproc));
    }
  }

  #give(host: Host, count: number): void {
    const { id } = host.member;
    host.groupRank = this.#hostCount++;
    const slots = Array.from({ length: count }, () => this.#take(id));
    const worldSize = this.#firstSlot + this.#assigned.length;
    this.#send(id, {
      kind: 'admitted',
      slots: slots.map(({ number: slot, timesAssigned }, localRank) => ({
        ...{ kind: 'slot', slot, incarnation: (timesAssigned - 1) * incarnationsEach, why: null },
        ...{ localRank, localWorldSize: count, worldSize },
        ...{ groupRank: host.groupRank!, groupWorldSize: this.#hostCount },
      })),
    });
  }

  /** Assigns a slot that no process has, or a new one. */
  #take(id: string): AssignedSlot {
    let assigned = this.#assigned.find(({ host, number }) => host === null && !this.#held.has(number));
    if (assigned === undefined) {
      assigned = { number: this.#firstSlot + this.#assigned.length, host: null, timesAssigned: 0 };
      this.#assigned.push(assigned);
    }
    assigned.host = id;
    assigned.timesAssigned++;
    return assigned;
  }

  /** Releases a slot of a host. As long as its process is in the view, it counts as the slot of another launcher. */
  #free(assigned: AssignedSlot, nowMs: number): void {
    assigned.host = null;
    if (slotsOf(this.#view).includes(assigned.number)) this.#held.set(assigned.number, nowMs + heldMs);
  }

  #assignedSlot(slot: number): AssignedSlot | undefined {
    return this.#assigned.find(({ number, host }) => number === slot && host !== null);
  }

  get #waiting(): readonly Host[] {
    return [...this.#hosts.values()].filter(({ groupRank, isLeaving }) => groupRank === null && !isLeaving);
  }
}

/** Returns the slots of the members. Processes that no launcher has started have no slot, and do not count. */
const slotsOf = ({ members }: ViewFacts): number[] =>
  members.filter((id) => /^\d+\.\d+$/.test(id)).map(slotOf);
