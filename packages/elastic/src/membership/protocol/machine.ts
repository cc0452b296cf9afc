// One member as a pure state machine: inputs are events and the time, outputs are actions in the store. The driver
// (driver.ts) carries them out in a real store, and the simulator of the tests in a simulated one.
//
//   seeking ── a view with this member ──▶ connecting ── connected ──▶ training
//                                            ▲    │                        │
//               the next view has this member│    │not connected           │the view ends
//                                            │    ▼                        │
//                                          reporting ◀─────────────────────┘
//                                            │    ▲
//                            the store is lost│    │another one has the view
//                                            ▼    │
//                                            moving
//
// Every member may propose a view; the store takes the first one. To save work, only the lowest slot that has reported
// reads and proposes at once; the others do so if there is no view after 2 × settleMs.
import { decide, type FoundingRules, found, type Knowledge, lastOfEachSlot, type Rules } from './decide.ts';
import { shortened } from './report-size.ts';
import type { Report, View } from './view.ts';

/** The result of one read of the store. */
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
  /** Another member has reported that the view to which this member connects has ended. */
  | { readonly kind: 'over' }
  | { readonly kind: 'connected' }
  | { readonly kind: 'not connected'; readonly failure: string; readonly unreachable: Report['unreachable'] }
  /**
   * The store was lost, and this member now uses another one, after the `epoch`th move of the store. Answers to earlier
   * actions will not arrive. This member never uses an earlier store again.
   */
  | { readonly kind: 'moved'; readonly epoch: number }
  /** The view in the new store that has the number of the present view. */
  | { readonly kind: 'opened'; readonly view: View }
  | { readonly kind: 'time' };

export type Action =
  | { readonly kind: 'report'; readonly report: Report }
  /**
   * Read the reports of view `view`, all wishes after `wishes` and the `unread` ones, and which of `ids` have ended.
   */
  | {
      readonly kind: 'read';
      readonly view: number;
      readonly wishes: number;
      readonly unread: readonly number[];
      readonly ids: readonly string[];
    }
  /** Write the view, unless the store has one of that number; answered by the view in the store. */
  | { readonly kind: 'propose'; readonly view: View }
  /** Write the present view into a store to which this member has moved; answered by 'opened'. */
  | { readonly kind: 'open'; readonly view: View }
  /** Wait for a view after `view`; replaces an earlier watch. */
  | { readonly kind: 'watch'; readonly view: number }
  /** Send 'time' at this time; replaces an earlier alarm. */
  | { readonly kind: 'wake'; readonly atMs: number }
  /** Connect the members of `view`, until 'over' or at most `connectMs` milliseconds. */
  | { readonly kind: 'connect'; readonly view: View }
  /** Stop connecting; answered by 'not connected', or not at all if connecting has already succeeded. */
  | { readonly kind: 'disconnect' }
  | { readonly kind: 'end'; readonly reason: End };

/** The reason for the end of a process's membership. */
export type End =
  | { readonly kind: 'left out'; readonly view: View }
  | { readonly kind: 'job ended'; readonly view: View }
  /**
   * The founding members did not arrive in time, or the members did not admit this process. `present` is the number of
   * founding processes that arrived, or of members that are left.
   */
  | { readonly kind: 'too few'; readonly present: number; readonly isFounding: boolean };

export interface Settings extends FoundingRules, Pick<Rules, 'min' | 'joinTimeoutMs'> {}

/** Deadlines that depend on how long steps take. */
export type Patience = Pick<Rules, 'settleMs' | 'stallMs'>;

type Phase = 'seeking' | 'connecting' | 'training' | 'reporting' | 'moving' | 'done';

/** Maximum number of keys of ended processes in one read. */
const mostAsked = 64;
const shortestPollMs = 5;
const longestPollMs = 100;
/** First interval in milliseconds at which a member that is not the proposer reads. */
const watchMs = 20;
/** Interval in milliseconds at which a process that waits to be admitted checks whether the job continues. */
const seekMs = 1_000;

/** The state of a machine, as plain data. */
interface Memory {
  phase: Phase;
  /** The view in which this member is or to which it connects; while seeking, the last view that it has read. */
  view: View | null;
  report: Report | null;
  wishNumber: number;
  /** Time at which the present phase began. */
  sinceMs: number;
  /** Time since which at least `min` processes have asked to found the job; null if fewer have. */
  enoughSinceMs: number | null;
  isReading: boolean;
  ended: Set<string>;
  /** Ids that the next read asks about. */
  missing: readonly string[];
  /** Number of times that this member has followed a move of the store. */
  epoch: number;
}

export class Machine {
  readonly #id: string;
  readonly #settings: Settings;
  #patience: Patience;
  #memory: Memory = {
    phase: 'seeking',
    view: null,
    report: null,
    wishNumber: 0,
    sinceMs: 0,
    enoughSinceMs: null,
    isReading: false,
    ended: new Set(),
    missing: [],
    epoch: 0,
  };

  constructor(id: string, settings: Settings, patience: Patience) {
    this.#id = id;
    this.#settings = settings;
    this.#patience = patience;
  }

  /** Returns an independent machine with the same state. */
  fork(): Machine {
    const copy = new Machine(this.#id, this.#settings, this.#patience);
    copy.#memory = { ...this.#memory, ended: new Set(this.#memory.ended) };
    return copy;
  }

  /** Returns the state for comparison, with times relative to `nowMs`. */
  describe(nowMs: number): unknown {
    const { sinceMs, enoughSinceMs, ended, ...rest } = this.#memory;
    const enoughForMs = enoughSinceMs === null ? null : nowMs - enoughSinceMs;
    return { ...rest, ended: [...ended].sort(), forMs: nowMs - sinceMs, enoughForMs };
  }

  get phase(): Phase {
    return this.#memory.phase;
  }
  get view(): View | null {
    return this.#memory.view;
  }
  get epoch(): number {
    return this.#memory.epoch;
  }

  /** Sets the deadlines of later changes of the view. */
  setPatience(patience: Patience): void {
    this.#patience = patience;
  }

  take(input: Input, nowMs: number): Action[] {
    switch (input.kind) {
      case 'wished':
        this.#memory.wishNumber = input.wishNumber;
        this.#enter('seeking', nowMs);
        // The head may already include this member.
        return input.head === null ? [this.#watch(), ...this.#seek(nowMs)] : this.#useView(input.head, nowMs);
      case 'ended':
        return this.#memory.phase === 'training' ? this.#startReporting(input.report, nowMs) : [];
      case 'read':
        return this.#useReading(input.reading, nowMs);
      case 'view':
        return this.#useView(input.view, nowMs);
      case 'over':
        return this.#memory.phase === 'connecting' ? [{ kind: 'disconnect' }] : [];
      case 'connected':
        if (this.#memory.phase !== 'connecting') return [];
        this.#enter('training', nowMs);
        return [];
      case 'not connected':
        return this.#memory.phase === 'connecting' ? this.#reportAgain(input, nowMs) : [];
      case 'moved':
        return this.#move(input.epoch, nowMs);
      case 'opened':
        return this.#useOpened(input.view, nowMs);
      case 'time':
        return this.#tick(nowMs);
    }
  }

  /** Continues in another store. The members report their knowledge about the step there again. */
  #move(epoch: number, nowMs: number): Action[] {
    const { phase, view } = this.#memory;
    if (view === null || (phase !== 'reporting' && phase !== 'connecting')) return [];
    this.#memory.epoch = epoch;
    const wasConnecting = phase === 'connecting';
    this.#enter('moving', nowMs);
    return [...(wasConnecting ? [{ kind: 'disconnect' } as const] : []), { kind: 'open', view }];
  }

  #useOpened(stored: View, nowMs: number): Action[] {
    const { phase, view, report } = this.#memory;
    if (phase !== 'moving' || view === null) return [];
    // The other members have continued there from an earlier view.
    if (stored.epoch !== view.epoch) return this.#end({ kind: 'left out', view: stored });
    if (report?.view === view.number) return this.#startReporting(report, nowMs);
    return this.#reportAgain({ failure: 'the store was lost', unreachable: [] }, nowMs);
  }

  #enter(phase: Phase, nowMs: number): void {
    this.#memory.phase = phase;
    this.#memory.sinceMs = nowMs;
    this.#memory.missing = [];
    this.#memory.isReading = false;
  }

  #end(reason: End): Action[] {
    this.#memory.phase = 'done';
    return [{ kind: 'end', reason }];
  }

  #watch(): Action {
    return { kind: 'watch', view: this.#memory.view?.number ?? -1 };
  }

  #startReporting(full: Report, nowMs: number): Action[] {
    const { members } = this.#memory.view!;
    const rank = members.findIndex(({ id }) => id === this.#id);
    const report = shortened(full, rank, members.length);
    this.#memory.report = report;
    this.#enter('reporting', nowMs);
    const lost = new Set(full.unreachable.map(({ member }) => member));
    for (const { member, isCertain } of full.unreachable) if (isCertain) this.#memory.ended.add(member);
    const likely = members.filter(({ id }) => !lost.has(id));
    const index = likely.findIndex(({ id }) => id === this.#id);
    const first: Action[] =
      index === 0 ? this.#read() : [{ kind: 'wake', atMs: nowMs + this.#watchMs(index) }];
    return [{ kind: 'report', report }, this.#watch(), ...first];
  }

  /** Reports again after a view that never connected, with the same knowledge about the step. */
  #reportAgain(
    { failure, unreachable }: Pick<Report, 'unreachable'> & { readonly failure: string },
    nowMs: number,
  ): Action[] {
    const before = this.#memory.report ?? {
      member: this.#id,
      finalSteps: 0,
      isComplete: false,
      hasState: false,
      isLeaving: false,
      isDone: false,
    };
    const { number, members } = this.#memory.view!;
    const named = new Set(unreachable.map(({ member }) => member));
    const dead = members.filter(({ id }) => this.#memory.ended.has(id) && !named.has(id));
    const all = [...unreachable, ...dead.map(({ id }) => ({ member: id, isCertain: true }))];
    return this.#startReporting(
      { ...before, view: number, wasConnected: false, unreachable: all, failure },
      nowMs,
    );
  }

  #read(): Action[] {
    if (this.#memory.isReading) return [];
    this.#memory.isReading = true;
    const { number, wishes, unread } = this.#memory.view ?? { number: -1, wishes: 0, unread: [] };
    return [{ kind: 'read', view: number, wishes, unread, ids: this.#memory.missing.slice(0, mostAsked) }];
  }

  #tick(nowMs: number): Action[] {
    if (this.#memory.phase === 'seeking') return this.#seek(nowMs);
    if (this.#memory.phase === 'reporting' || this.#memory.phase === 'connecting') return this.#read();
    return [];
  }

  #useReading(reading: Reading, nowMs: number): Action[] {
    if (reading.view !== (this.#memory.view?.number ?? -1)) return [];
    this.#memory.isReading = false;
    for (const id of reading.ended) this.#memory.ended.add(id);
    const ended: ReadonlySet<string> = this.#memory.ended;
    const knowledge = { ...reading, ended, forMs: nowMs - this.#memory.sinceMs };
    if (this.#memory.phase === 'seeking') return this.#useWishes(knowledge, nowMs);
    if (this.#memory.phase === 'connecting') return this.#checkConnecting(nowMs);
    return this.#memory.phase === 'reporting' ? this.#propose(knowledge, nowMs) : [];
  }

  #propose(knowledge: Knowledge, nowMs: number): Action[] {
    const { settleMs, stallMs } = this.#patience;
    const reported = new Set(knowledge.reports.map(({ member }) => member));
    const living = this.#memory.view!.members.filter(({ id }) => !this.#memory.ended.has(id));
    const leaving = new Set(knowledge.reports.flatMap((each) => (each.isLeaving ? [each.member] : [])));
    const isFirst = living.find(({ id }) => reported.has(id) && !leaving.has(id))?.id === this.#id;
    this.#memory.missing = living.flatMap(({ id }) => (reported.has(id) ? [] : [id]));
    if (isFirst || knowledge.forMs >= 2 * settleMs) {
      const { min, joinTimeoutMs } = this.#settings;
      const outcome = decide(this.#memory.view!, knowledge, {
        ...{ settleMs, stallMs, min, joinTimeoutMs, epoch: this.#memory.epoch },
      });
      if (outcome.kind === 'view') return [{ kind: 'propose', view: outcome.view }];
    }
    const index = living.findIndex(({ id }) => id === this.#id);
    const pauseMs = isFirst ? this.#pollMs(nowMs) : Math.max(this.#watchMs(index), this.#pollMs(nowMs));
    return [{ kind: 'wake', atMs: nowMs + pauseMs }];
  }

  /** Returns a pause that grows with the time for which this phase has lasted. */
  #pollMs(nowMs: number): number {
    return Math.min(Math.max((nowMs - this.#memory.sinceMs) / 10, shortestPollMs), longestPollMs);
  }

  /** Returns how long the member at `index`, in order of slot, waits before it takes over the work of lower members. */
  #watchMs(index: number): number {
    return Math.min(watchMs * Math.max(index, 1), 2 * this.#patience.settleMs);
  }

  #useView(view: View, nowMs: number): Action[] {
    const { phase } = this.#memory;
    if (phase === 'done' || phase === 'training' || phase === 'moving') return [];
    if (view.number <= (this.#memory.view?.number ?? -1)) return [];
    const before = this.#memory.view;
    const isNext = view.number === (before?.number ?? -1) + 1;
    const wasConnecting = this.#memory.phase === 'connecting';
    const stop: Action[] = wasConnecting ? [{ kind: 'disconnect' }] : [];
    const isMember = view.members.some(({ id }) => id === this.#id);
    if (view.ended !== null) return [...stop, ...this.#end({ kind: 'job ended', view })];
    if (this.#memory.phase === 'seeking' && !isMember) {
      const isRead = this.#memory.wishNumber <= view.wishes && !view.unread.includes(this.#memory.wishNumber);
      // An earlier view included this member, and this one does not.
      if (isRead) return this.#end({ kind: 'left out', view });
      this.#memory.view = view;
      this.#enter('seeking', nowMs);
      return [this.#watch(), { kind: 'wake', atMs: nowMs + seekMs }];
    }
    if (!isMember || (!isNext && this.#memory.phase !== 'seeking'))
      return [...stop, ...this.#end({ kind: 'left out', view })];
    this.#memory.view = view;
    this.#memory.epoch = Math.max(this.#memory.epoch, view.epoch);
    this.#enter('connecting', nowMs);
    return [
      ...stop,
      this.#watch(),
      { kind: 'connect', view },
      { kind: 'wake', atMs: nowMs + this.#checkMs() },
    ];
  }

  /**
   * Returns the interval at which a member that connects asks whether others have ended: longer for higher slots.
   */
  #checkMs(): number {
    const index = this.#memory.view!.members.findIndex(({ id }) => id === this.#id);
    return Math.min(watchMs * 2 ** Math.min(index, 8), 2 * this.#patience.settleMs);
  }

  #checkConnecting(nowMs: number): Action[] {
    const { members } = this.#memory.view!;
    const dead = members.filter(({ id }) => this.#memory.ended.has(id));
    if (dead.length > 0) return [{ kind: 'disconnect' }];
    this.#memory.missing = this.#nextAsked(members.map(({ id }) => id));
    return [{ kind: 'wake', atMs: nowMs + this.#checkMs() }];
  }

  /** Returns ids in the order in which to ask about them. If they exceed one read, each call starts with other ids. */
  #nextAsked(ids: readonly string[]): string[] {
    const { missing } = this.#memory;
    const from = ids.indexOf(missing[Math.min(missing.length, mostAsked) - 1] ?? '') + 1;
    return [...ids.slice(from), ...ids.slice(0, from)];
  }

  #seek(nowMs: number): Action[] {
    const { isReading, view, wishNumber, sinceMs } = this.#memory;
    if (isReading) return [];
    const { settleMs } = this.#patience;
    // The author of wish 1 founds the job. Others try after settleMs, plus a millisecond because timers round.
    const isEarly = nowMs - sinceMs < settleMs;
    if (view === null && wishNumber > 1 && isEarly) return [{ kind: 'wake', atMs: sinceMs + settleMs + 1 }];
    return this.#read();
  }

  #useWishes(knowledge: Knowledge, nowMs: number): Action[] {
    if (this.#memory.view !== null) return this.#watchJob(knowledge, nowMs);
    const { size, min, lastCallMs, joinTimeoutMs, founders } = this.#settings;
    const candidates = lastOfEachSlot(knowledge);
    if (candidates.length >= min) this.#memory.enoughSinceMs ??= nowMs;
    else this.#memory.enoughSinceMs = null;
    const forMs = this.#memory.enoughSinceMs === null ? 0 : nowMs - this.#memory.enoughSinceMs;
    const view = found({ ...knowledge, forMs }, { size, min, lastCallMs, founders });
    if (view !== null) return [{ kind: 'propose', view }];
    if (knowledge.forMs >= joinTimeoutMs)
      return this.#end({ kind: 'too few', present: candidates.length, isFounding: true });
    const there = new Set(candidates.map(({ id }) => id));
    const absent = founders.filter((id) => !there.has(id) && !this.#memory.ended.has(id));
    this.#memory.missing = this.#nextAsked([...absent, ...there]);
    const pauseMs = this.#memory.wishNumber === 1 ? this.#pollMs(nowMs) : longestPollMs;
    return [{ kind: 'wake', atMs: nowMs + pauseMs }];
  }

  /** Ends the attempt of a process that waits to be admitted if no member is left that could admit it. */
  #watchJob(knowledge: Knowledge, nowMs: number): Action[] {
    const { members } = this.#memory.view!;
    const left = new Set(knowledge.reports.flatMap((report) => (report.isLeaving ? [report.member] : [])));
    const rest = members.filter(({ id }) => !left.has(id) && !this.#memory.ended.has(id));
    if (rest.length === 0) {
      const { epoch } = this.#memory.view!;
      const rules = { ...this.#settings, ...this.#patience, epoch };
      const outcome = decide(this.#memory.view!, { ...knowledge, wishes: [] }, rules);
      if (outcome.kind === 'view') return [{ kind: 'propose', view: outcome.view }];
    }
    if (knowledge.forMs >= this.#settings.joinTimeoutMs)
      return this.#end({ kind: 'too few', present: rest.length, isFounding: false });
    this.#memory.missing = rest.map(({ id }) => id);
    return [{ kind: 'wake', atMs: nowMs + seekMs }];
  }
}
