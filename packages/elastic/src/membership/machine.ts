// One member as a pure state machine: what happens and the time go in, what to do in the store comes out. The driver
// (driver.ts) does it with a real store; the simulator of the tests does it with a simulated one.
//
//   seeking ── a view with this member ──▶ connecting ── connected ──▶ training ── the view ends ──▶ reporting
//                                              ▲  │ not connected                                      │  ▲
//                                              │  └───────────────────────────────────────────────────│──┘
//                                              └──────────────────── the next view has this member ────┘
//
// Anyone may propose a view; the store takes the first one. To save work, only the lowest slot that has reported reads
// and proposes at once; the others do the same when there is no view after 2 × settleMs.
import { decide, type FoundingRules, found, type Knowledge, lastOfEachSlot, type Rules } from './decide.ts';
import type { Report, View } from './view.ts';

/** What one read of the store tells. */
export interface Reading extends Omit<Knowledge, 'forMs'> {
  /** Number of the view whose reports were read. */
  readonly view: number;
}

export type Input =
  /** The wish to join has been written, as number `wishNumber`. `head` is a view that exists, or null. */
  | { readonly kind: 'wished'; readonly wishNumber: number; readonly head: View | null }
  /** The present view has ended for this member. */
  | { readonly kind: 'ended'; readonly report: Report }
  | { readonly kind: 'read'; readonly reading: Reading }
  /** A view after the present one is in the store: the next one, or a later one if this member was away. */
  | { readonly kind: 'view'; readonly view: View }
  /** Another member has reported that the view to which this one connects has ended. */
  | { readonly kind: 'over' }
  | { readonly kind: 'connected' }
  | { readonly kind: 'not connected'; readonly failure: string; readonly unreachable: Report['unreachable'] }
  | { readonly kind: 'time' };

export type Action =
  | { readonly kind: 'report'; readonly report: Report }
  /** Read the reports of view `view`, all wishes after `wishes` and the `unread` ones, and which of `ids` have ended. */
  | {
      readonly kind: 'read';
      readonly view: number;
      readonly wishes: number;
      readonly unread: readonly number[];
      readonly ids: readonly string[];
    }
  /** Write the view if there is none of its number; answered by the one that is there. */
  | { readonly kind: 'propose'; readonly view: View }
  /** Wait for a view after `view`; replaces an earlier watch. */
  | { readonly kind: 'watch'; readonly view: number }
  /** Send 'time' at this time; replaces an earlier alarm. */
  | { readonly kind: 'wake'; readonly atMs: number }
  /** Connect the members of `view`, until 'over' or at most `connectMs` milliseconds. */
  | { readonly kind: 'connect'; readonly view: View }
  /** Stop connecting; answered by 'not connected' or, if it was too late, by nothing. */
  | { readonly kind: 'disconnect' }
  | { readonly kind: 'end'; readonly reason: End };

/** How a member's part in the job ends. */
export type End =
  | { readonly kind: 'left out'; readonly view: View }
  | { readonly kind: 'left' }
  | { readonly kind: 'job ended'; readonly view: View }
  /** The founding members did not come, or the members did not admit this one. `present` is the number of either. */
  | { readonly kind: 'too few'; readonly present: number; readonly isFounding: boolean };

export interface Settings extends FoundingRules, Omit<Rules, 'settleMs' | 'stallMs'> {}

/** Deadlines that depend on how long steps take. */
export type Patience = Pick<Rules, 'settleMs' | 'stallMs'>;

type Phase = 'seeking' | 'connecting' | 'training' | 'reporting' | 'done';

/** Most keys of ended processes that are read at once. */
const mostAsked = 64;
const shortestPollMs = 5;
const longestPollMs = 100;
/** How often a member that only watches the proposer reads, at first. */
const watchMs = 20;
/** How often one that waits to be admitted looks whether the job goes on. */
const seekMs = 1_000;

export class Machine {
  readonly #id: string;
  readonly #settings: Settings;
  #patience: Patience;
  #phase: Phase = 'seeking';
  /** The view in which this member is or to which it connects; while seeking, the last one that it has seen. */
  #view: View | null = null;
  #report: Report | null = null;
  #wishNumber = 0;
  /** When the present phase began. */
  #sinceMs = 0;
  /** When there were `min` that want to found the job. */
  #enoughSinceMs: number | null = null;
  #isReading = false;
  readonly #ended = new Set<string>();
  /** Ids that the next read asks about. */
  #missing: readonly string[] = [];

  constructor(id: string, settings: Settings, patience: Patience) {
    this.#id = id;
    this.#settings = settings;
    this.#patience = patience;
  }

  get phase(): Phase {
    return this.#phase;
  }
  get view(): View | null {
    return this.#view;
  }

  /** Sets the deadlines of the changes from now on. */
  setPatience(patience: Patience): void {
    this.#patience = patience;
  }

  take(input: Input, nowMs: number): Action[] {
    switch (input.kind) {
      case 'wished':
        this.#wishNumber = input.wishNumber;
        this.#enter('seeking', nowMs);
        // The head may have this member already.
        return input.head === null ? [this.#watch(), ...this.#seek(nowMs)] : this.#useView(input.head, nowMs);
      case 'ended':
        return this.#phase === 'training' ? this.#startReporting(input.report, nowMs) : [];
      case 'read':
        return this.#useReading(input.reading, nowMs);
      case 'view':
        return this.#useView(input.view, nowMs);
      case 'over':
        return this.#phase === 'connecting' ? [{ kind: 'disconnect' }] : [];
      case 'connected':
        if (this.#phase !== 'connecting') return [];
        this.#enter('training', nowMs);
        return [];
      case 'not connected':
        return this.#phase === 'connecting' ? this.#reportAgain(input, nowMs) : [];
      case 'time':
        return this.#tick(nowMs);
    }
  }

  #enter(phase: Phase, nowMs: number): void {
    this.#phase = phase;
    this.#sinceMs = nowMs;
    this.#missing = [];
    this.#isReading = false;
  }

  #end(reason: End): Action[] {
    this.#phase = 'done';
    return [{ kind: 'end', reason }];
  }

  #watch(): Action {
    return { kind: 'watch', view: this.#view?.number ?? -1 };
  }

  #startReporting(report: Report, nowMs: number): Action[] {
    this.#report = report;
    this.#enter('reporting', nowMs);
    const lost = new Set(report.unreachable.map(({ member }) => member));
    for (const { member, isCertain } of report.unreachable) if (isCertain) this.#ended.add(member);
    const likely = this.#view!.members.filter(({ id }) => !lost.has(id));
    const place = likely.findIndex(({ id }) => id === this.#id);
    const first: Action[] =
      place === 0 ? this.#read() : [{ kind: 'wake', atMs: nowMs + this.#watchMs(place) }];
    return [{ kind: 'report', report }, this.#watch(), ...first];
  }

  /** Reports again after a view that was not connected, with the same knowledge about the step. */
  #reportAgain(
    { failure, unreachable }: Pick<Report, 'unreachable'> & { readonly failure: string },
    nowMs: number,
  ): Action[] {
    const before = this.#report ?? {
      member: this.#id,
      finalSteps: 0,
      isComplete: false,
      hasState: false,
      isLeaving: false,
    };
    const { number, members } = this.#view!;
    const named = new Set(unreachable.map(({ member }) => member));
    const dead = members.filter(({ id }) => this.#ended.has(id) && !named.has(id));
    const all = [...unreachable, ...dead.map(({ id }) => ({ member: id, isCertain: true }))];
    return this.#startReporting(
      { ...before, view: number, wasConnected: false, unreachable: all, failure },
      nowMs,
    );
  }

  #read(): Action[] {
    if (this.#isReading) return [];
    this.#isReading = true;
    const { number, wishes, unread } = this.#view ?? { number: -1, wishes: 0, unread: [] };
    return [{ kind: 'read', view: number, wishes, unread, ids: this.#missing.slice(0, mostAsked) }];
  }

  #tick(nowMs: number): Action[] {
    if (this.#phase === 'seeking') return this.#seek(nowMs);
    if (this.#phase === 'reporting' || this.#phase === 'connecting') return this.#read();
    return [];
  }

  #useReading(reading: Reading, nowMs: number): Action[] {
    if (reading.view !== (this.#view?.number ?? -1)) return [];
    this.#isReading = false;
    for (const id of reading.ended) this.#ended.add(id);
    const ended: ReadonlySet<string> = this.#ended;
    const knowledge = { ...reading, ended, forMs: nowMs - this.#sinceMs };
    if (this.#phase === 'seeking') return this.#useWishes(knowledge, nowMs);
    if (this.#phase === 'connecting') return this.#checkConnecting(nowMs);
    return this.#phase === 'reporting' ? this.#propose(knowledge, nowMs) : [];
  }

  #propose(knowledge: Knowledge, nowMs: number): Action[] {
    const { settleMs, stallMs } = this.#patience;
    const reported = new Set(knowledge.reports.map(({ member }) => member));
    const living = this.#view!.members.filter(({ id }) => !this.#ended.has(id));
    const isFirst = living.find(({ id }) => reported.has(id))?.id === this.#id;
    const { min, joinTimeoutMs } = this.#settings;
    const outcome = decide(this.#view!, knowledge, { settleMs, stallMs, min, joinTimeoutMs });
    this.#missing = living.flatMap(({ id }) => (reported.has(id) ? [] : [id]));
    const mayPropose = isFirst || knowledge.forMs >= 2 * settleMs;
    if (outcome.kind === 'view' && mayPropose) return [{ kind: 'propose', view: outcome.view }];
    const place = living.findIndex(({ id }) => id === this.#id);
    const pauseMs = isFirst ? this.#pollMs(nowMs) : Math.max(this.#watchMs(place), this.#pollMs(nowMs));
    return [{ kind: 'wake', atMs: nowMs + pauseMs }];
  }

  /** Returns a pause that grows with the time for which this phase has lasted. */
  #pollMs(nowMs: number): number {
    return Math.min(Math.max((nowMs - this.#sinceMs) / 10, shortestPollMs), longestPollMs);
  }

  /** Returns how long the member at this place of the order waits before it looks after the ones before it. */
  #watchMs(place: number): number {
    return Math.min(watchMs * Math.max(place, 1), 2 * this.#patience.settleMs);
  }

  #useView(view: View, nowMs: number): Action[] {
    if (this.#phase === 'done' || this.#phase === 'training') return [];
    if (view.number <= (this.#view?.number ?? -1)) return [];
    const before = this.#view;
    const isNext = view.number === (before?.number ?? -1) + 1;
    const wasConnecting = this.#phase === 'connecting';
    const stop: Action[] = wasConnecting ? [{ kind: 'disconnect' }] : [];
    const isMember = view.members.some(({ id }) => id === this.#id);
    if (this.#report?.isLeaving) return [...stop, ...this.#end({ kind: 'left' })];
    if (view.ended !== null) return [...stop, ...this.#end({ kind: 'job ended', view })];
    if (this.#phase === 'seeking' && !isMember) {
      const isRead = this.#wishNumber <= view.wishes && !view.unread.includes(this.#wishNumber);
      // A view before this one had this member, and has gone on without it.
      if (isRead) return this.#end({ kind: 'left out', view });
      this.#view = view;
      this.#enter('seeking', nowMs);
      return [this.#watch(), { kind: 'wake', atMs: nowMs + seekMs }];
    }
    if (!isMember || (!isNext && this.#phase !== 'seeking'))
      return [...stop, ...this.#end({ kind: 'left out', view })];
    this.#view = view;
    this.#enter('connecting', nowMs);
    return [
      ...stop,
      this.#watch(),
      { kind: 'connect', view },
      { kind: 'wake', atMs: nowMs + this.#checkMs() },
    ];
  }

  /** Returns how often a member that connects asks whether another one has ended; the later its place, the less often. */
  #checkMs(): number {
    const place = this.#view!.members.findIndex(({ id }) => id === this.#id);
    return Math.min(watchMs * 2 ** Math.min(place, 8), 2 * this.#patience.settleMs);
  }

  #checkConnecting(nowMs: number): Action[] {
    const { members } = this.#view!;
    const dead = members.filter(({ id }) => this.#ended.has(id));
    if (dead.length > 0) return [{ kind: 'disconnect' }];
    // The next ones in turn, if there are too many for one read.
    const last = this.#missing[Math.min(this.#missing.length, mostAsked) - 1];
    const from = members.findIndex(({ id }) => id === last) + 1;
    this.#missing = [...members.slice(from), ...members.slice(0, from)].map(({ id }) => id);
    return [{ kind: 'wake', atMs: nowMs + this.#checkMs() }];
  }

  #seek(nowMs: number): Action[] {
    if (this.#isReading) return [];
    if (this.#view === null && this.#wishNumber > 1 && nowMs - this.#sinceMs < this.#patience.settleMs)
      return [{ kind: 'wake', atMs: this.#sinceMs + this.#patience.settleMs }];
    return this.#read();
  }

  #useWishes(knowledge: Knowledge, nowMs: number): Action[] {
    if (this.#view !== null) return this.#watchJob(knowledge, nowMs);
    const { size, min, lastCallMs, joinTimeoutMs } = this.#settings;
    const candidates = lastOfEachSlot(knowledge);
    if (candidates.length >= min) this.#enoughSinceMs ??= nowMs;
    else this.#enoughSinceMs = null;
    const forMs = this.#enoughSinceMs === null ? 0 : nowMs - this.#enoughSinceMs;
    const view = found({ ...knowledge, forMs }, { size, min, lastCallMs });
    if (view !== null) return [{ kind: 'propose', view }];
    if (knowledge.forMs >= joinTimeoutMs)
      return this.#end({ kind: 'too few', present: candidates.length, isFounding: true });
    this.#missing = candidates.map(({ id }) => id);
    const pauseMs = this.#wishNumber === 1 ? this.#pollMs(nowMs) : longestPollMs;
    return [{ kind: 'wake', atMs: nowMs + pauseMs }];
  }

  /** Ends the job for one that waits to be admitted if no member of the view is left that could admit it. */
  #watchJob(knowledge: Knowledge, nowMs: number): Action[] {
    const { members } = this.#view!;
    const left = new Set(knowledge.reports.flatMap((report) => (report.isLeaving ? [report.member] : [])));
    const rest = members.filter(({ id }) => !left.has(id) && !this.#ended.has(id));
    if (rest.length === 0) {
      const rules = { ...this.#settings, ...this.#patience };
      const outcome = decide(this.#view!, { ...knowledge, wishes: [] }, rules);
      if (outcome.kind === 'view') return [{ kind: 'propose', view: outcome.view }];
    }
    if (knowledge.forMs >= this.#settings.joinTimeoutMs)
      return this.#end({ kind: 'too few', present: rest.length, isFounding: false });
    this.#missing = rest.map(({ id }) => id);
    return [{ kind: 'wake', atMs: nowMs + seekMs }];
  }
}
