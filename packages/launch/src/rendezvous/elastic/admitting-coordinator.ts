// Admits further hosts to an elastic job whose store has moved. It runs on the launcher that keeps the new store, and
// only gives slots to launchers that come: after a move each launcher decides for its own slots (own-slots.ts). Like
// the other coordinators, this is a pure state machine: reports, views and the time go in, orders come out.

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

/** A slot that this coordinator has given to a host. */
interface Seat {
  readonly number: number;
  /** Id of the launcher; null if it has left or is lost: then the next launcher that joins gets the slot. */
  host: string | null;
  timesGiven: number;
}

/**
 * Milliseconds for which a slot of another launcher counts towards MAX after it was last in a view, because that
 * launcher may be starting its process again.
 */
const heldMs = 60_000;

/** Slot numbers that are reserved for each move of the store, if `--elastic MIN:MAX` has no MAX. */
const slotsWithoutMax = 1_000;

/**
 * Incarnations that are reserved for each launcher of a slot: a launcher counts them from a start value that it gets
 * with the slot. Two launchers of one slot must not use the same, because `slot.incarnation` is unique in the job.
 */
const incarnationsEach = 1_000;

export class AdmittingCoordinator implements Decider {
  readonly #maxRanks: number;
  readonly #send: Send;
  readonly #hosts = new Map<string, Host>();
  readonly #seats: Seat[] = [];
  /** The slots of other launchers, and until when they count. */
  readonly #held = new Map<number, number>();
  /** First number of a slot here. A process in a slot that another one has would replace it (membership/decide.ts). */
  readonly #firstSlot: number;
  /** Number of hosts so far. */
  #hostCount: number;
  #view: ViewFacts;
  #end: Outcome | null = null;

  /** `view` is the first one that was written in this store. Times are milliseconds on one monotonic clock. */
  constructor(maxRanks: number, view: ViewFacts, send: Send) {
    this.#maxRanks = maxRanks;
    this.#send = send;
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
      else this.#held.set(slot, Math.min(untilMs, nowMs + heldMs));
    }
    for (const slot of present)
      if (this.#seatOf(slot) === undefined) this.#held.set(slot, Number.POSITIVE_INFINITY);
    this.#place();
  }

  /** Notes that a launcher has left or is lost, and gives its slots to one that waits. */
  lost(id: string, nowMs: number): void {
    this.#hosts.delete(id);
    for (const seat of this.#seats) if (seat.host === id) this.#free(seat, nowMs);
    this.#place();
  }

  tick(nowMs: number): void {
    for (const [slot, untilMs] of this.#held) if (nowMs >= untilMs) this.#held.delete(slot);
    this.#place();
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
      this.#place();
      if (host.groupRank === null)
        this.#send(member.id, { kind: 'wait', text: words.reserve(this.#maxRanks) });
    }
  }

  #leaving(id: string, signal: NodeJS.Signals): void {
    const host = this.#hosts.get(id);
    if (!host) return;
    host.isLeaving = true;
    // One with slots leaves by itself when its ranks have ended.
    if (host.groupRank === null) this.#send(id, finish(stoppedBy(signal, id)));
  }

  /** Gives slots to launchers that have none, in the order in which they have come. */
  #place(): void {
    for (const host of this.#waiting) {
      const given = this.#seats.filter((seat) => seat.host !== null).length;
      const room = Math.max(0, this.#maxRanks - given - this.#held.size);
      if (room > 0) this.#give(host, Math.min(room, host.member.nproc));
    }
  }

  #give(host: Host, count: number): void {
    const { id } = host.member;
    host.groupRank = this.#hostCount++;
    const seats = Array.from({ length: count }, () => this.#take(id));
    const worldSize = this.#firstSlot + this.#seats.length;
    this.#send(id, {
      kind: 'admitted',
      slots: seats.map(({ number: slot, timesGiven }, localRank) => ({
        ...{ kind: 'slot', slot, incarnation: (timesGiven - 1) * incarnationsEach, why: null },
        ...{ localRank, localWorldSize: count, worldSize },
        ...{ groupRank: host.groupRank!, groupWorldSize: this.#hostCount },
      })),
    });
  }

  /** Takes a slot that no process has, or a new one. */
  #take(id: string): Seat {
    let seat = this.#seats.find(({ host, number }) => host === null && !this.#held.has(number));
    if (seat === undefined) {
      seat = { number: this.#firstSlot + this.#seats.length, host: null, timesGiven: 0 };
      this.#seats.push(seat);
    }
    seat.host = id;
    seat.timesGiven++;
    return seat;
  }

  /** Takes a slot from its host. As long as its process is in the view, it counts as that of another launcher. */
  #free(seat: Seat, nowMs: number): void {
    seat.host = null;
    if (slotsOf(this.#view).includes(seat.number)) this.#held.set(seat.number, nowMs + heldMs);
  }

  #seatOf(slot: number): Seat | undefined {
    return this.#seats.find(({ number, host }) => number === slot && host !== null);
  }

  get #waiting(): readonly Host[] {
    return [...this.#hosts.values()].filter(({ groupRank, isLeaving }) => groupRank === null && !isLeaving);
  }
}

/** Returns the slots of the members. Those of processes that no launcher has started have none, and do not count. */
const slotsOf = ({ members }: ViewFacts): number[] =>
  members.filter((id) => /^\d+\.\d+$/.test(id)).map(slotOf);
