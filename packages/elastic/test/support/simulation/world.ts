// A world of simulated members: real machines, a simulated store, and a model of groups and training. What happens is
// a set of events. The random simulator (run.ts) executes them in the order of their times; the exhaustive search
// (explore.ts) executes them in every order.
//
// The model of a group: an operation ends at a member some time after all members have started it. A member that ends,
// or that leaves the group after an error, breaks the group; every other member gets an error some time after that.
// So when a group breaks, an operation may end at some members and not at others, as on a network.
import { type Action, type Input, Machine } from '../../../src/membership/protocol/machine.ts';
import { standbysOf } from '../../../src/membership/protocol/quorum.ts';
import type { Report, View, Wish } from '../../../src/membership/protocol/view.ts';
import type { Content, Event, SimGroup, SimHost, SimMember, Status, What, WorldOptions } from './parts.ts';
import { serve } from './serve.ts';
import { type Request, SimStore } from './store.ts';

export class World {
  readonly options: WorldOptions;
  readonly push: (event: Event) => void;
  nowMs = 0;
  hosts: SimHost[];
  storeFreeAtMs = 0;
  members: SimMember[] = [];
  groups: SimGroup[] = [];
  /** Pairs of members that cannot reach each other, as `a/b` with a < b; members with stores they cannot reach. */
  cuts = new Set<string>();
  cutOff = new Set<string>();
  /** For each step, the content that the first member has applied. */
  applied: Content[] = [];
  changesMs: number[] = [];

  constructor(options: WorldOptions, push: (event: Event) => void) {
    this.options = options;
    this.push = push;
    this.hosts = Array.from({ length: options.hosts ?? 1 }, () => ({ store: new SimStore(), isLost: false }));
  }

  /** The store with which the job began. */
  get store(): SimStore {
    return this.hosts[0]!.store;
  }

  fork(push: (event: Event) => void): World {
    const copy = new World(this.options, push);
    copy.nowMs = this.nowMs;
    copy.hosts = this.hosts.map(({ store, isLost }) => ({ store: store.fork(), isLost }));
    copy.storeFreeAtMs = this.storeFreeAtMs;
    copy.members = this.members.map((each) => ({
      ...each,
      machine: each.machine.fork(),
      steps: [...each.steps],
    }));
    copy.groups = this.groups.map((each) => ({
      ...each,
      calls: new Set(each.calls),
      started: each.started.map((set) => new Set(set)),
      changes: new Set(each.changes),
    }));
    copy.cuts = new Set(this.cuts);
    copy.cutOff = new Set(this.cutOff);
    copy.applied = [...this.applied];
    copy.changesMs = [...this.changesMs];
    return copy;
  }

  /** Adds a process that begins to join now. Returns its index. */
  startProcess(slot: number | null): number {
    const index = this.members.length;
    const count = this.hosts.length;
    const host = (slot ?? index) % count;
    const standby = count === 1 ? null : `${host}`;
    const wish: Wish = { id: `m${index}`, slot, host: `host ${host}`, process: null, standby };
    this.members.push({
      wish,
      host,
      store: this.#storeOf(host),
      machine: new Machine(wish.id, this.options.settings, this.options.patience),
      status: 'running',
      ending: null,
      stoppedUntilMs: 0,
      alarm: 0,
      watchedView: null,
      watchedOver: null,
      watchedWish: null,
      hasUnreadWish: false,
      wantsToLeave: false,
      isAsking: false,
      group: null,
      op: 0,
      base: 0,
      steps: [],
      averages: null,
      hasState: false,
      endedAtMs: null,
    });
    if (this.hosts[host]!.isLost) this.end(index, 'killed');
    else this.#ask(index, { kind: 'wish', wish });
    return index;
  }

  /** Returns the host of the store that the launcher of a host uses: the latest one of its ranks. */
  #storeOf(host: number): number {
    const own = this.members.filter((each) => each.host === host);
    own.sort((a, b) => b.machine.epoch - a.machine.epoch);
    return own[0]?.store ?? 0;
  }

  execute({ member, what }: Event): void {
    if (what.kind === 'start process') {
      this.startProcess(what.slot);
      return;
    }
    if (what.kind === 'request') {
      serve(this, member, what.request, what.store);
      return;
    }
    const self = this.members[member];
    if (self?.status !== 'running') return;
    switch (what.kind) {
      case 'answer':
        if (what.store === self.store) this.#answered(member, what.request, what.input);
        return;
      case 'alarm':
        if (what.alarm === self.alarm) this.#feed(member, { kind: 'time' });
        return;
      case 'wish seen':
        if (self.machine.phase === 'training' && self.machine.view!.number === what.view)
          self.hasUnreadWish = true;
        return;
      case 'start':
        this.#startOp(member, what.group, what.op);
        return;
      case 'op ends':
        this.#endOp(member, what.group, what.op);
        return;
      case 'op is late':
        this.#isLate(member, what.group, what.op);
        return;
      case 'connected':
        this.#connected(member, what.group);
        return;
      case 'connecting is late':
        this.#connectingIsLate(member, what.group);
        return;
      case 'error':
        this.#error(member, what.group, what.failure, what.lost);
        return;
      case 'store is lost':
        if (what.store === self.store) this.#storeIsLost(member);
        return;
      case 'kill':
        this.end(member, 'killed');
        return;
      case 'stop':
        self.stoppedUntilMs = this.nowMs + what.forMs;
        return;
      case 'leave':
        self.wantsToLeave = true;
        return;
      case 'false alarm':
        this.#falseAlarm(member, what.peer);
        return;
    }
  }

  /** Ends a member's process. */
  end(member: number, status: Status, ending: string | null = null): void {
    const self = this.members[member]!;
    self.status = status;
    self.ending = ending;
    if (self.group !== null && status !== 'left' && status !== 'finished') {
      this.#break(member, self.group, 'ERR_COLL_PEER_LOST', [member]);
    }
    const endedMs = this.options.timing.endedMs();
    if (endedMs !== null)
      this.later(member, endedMs, {
        kind: 'request',
        request: { kind: 'ended', id: self.wish.id },
        store: this.#storeOf(self.host),
      });
  }

  /** Ends all processes of a host, and its store. */
  loseHost(host: number): void {
    this.hosts[host]!.isLost = true;
    this.members.forEach((each, member) => {
      if (each.host === host) {
        if (each.status === 'running') this.end(member, 'killed');
      } else if (each.store === host)
        this.later(member, this.options.timing.noticeMs(), { kind: 'store is lost', store: host });
    });
  }

  /** Cuts the network of a host: from the hosts of `others` no message comes, and none arrives there. */
  cutHost(host: number, others: readonly number[]): void {
    this.members.forEach((each, a) => {
      if (each.host !== host) return;
      for (const other of others) this.cutOffStore(a, other);
      this.members.forEach((peer, b) => {
        if (!others.includes(peer.host)) return;
        this.cut(a, b);
        this.cutOffStore(b, host);
      });
    });
  }

  /** Training goes on without the store until the view ends. Then the member moves to the first store it reaches. */
  #storeIsLost(member: number): void {
    const self = this.members[member]!;
    const { machine } = self;
    if (machine.phase === 'training') return;
    const next = standbysOf(machine.view ?? { members: [] }, `${self.store}`).map(Number);
    const to = next.find((host) => this.reaches(member, host));
    if (to === undefined || (machine.phase !== 'reporting' && machine.phase !== 'connecting')) {
      this.end(member, 'no store');
      return;
    }
    self.store = to;
    self.watchedView = null;
    self.watchedOver = null;
    self.watchedWish = null;
    this.#feed(member, { kind: 'moved', epoch: machine.epoch + 1 });
  }

  /** Tells whether messages pass between a member and the store of a host. */
  reaches(member: number, store: number): boolean {
    return !this.hosts[store]!.isLost && !this.cutOff.has(`${member}/${store}`);
  }

  cut(a: number, b: number): void {
    this.cuts.add(pair(a, b));
  }

  /** From now on, no message passes between the member and a store. */
  cutOffStore(member: number, store = this.members[member]?.store ?? 0): void {
    this.cutOff.add(`${member}/${store}`);
    if (this.members[member]?.store === store)
      this.later(member, this.options.timing.storeMs, { kind: 'store is lost', store });
  }

  /** Makes something happen to a member after a time. */
  later(member: number, inMs: number, what: What): void {
    this.push({ atMs: this.nowMs + inMs, member, what });
  }

  // The store.

  #ask(member: number, request: Request): void {
    const { store } = this.members[member]!;
    if (!this.reaches(member, store)) {
      const { noticeMs, storeMs } = this.options.timing;
      const inMs = this.hosts[store]!.isLost ? noticeMs() : storeMs;
      if (!request.kind.startsWith('watch')) this.later(member, inMs, { kind: 'store is lost', store });
      return;
    }
    this.later(member, this.options.timing.messageMs(), { kind: 'request', request, store });
  }

  #answered(member: number, request: Request['kind'], input: Input): void {
    const { machine } = this.members[member]!;
    // Answers to watches of an earlier view are dropped, as the driver does.
    if (request === 'watch over' && machine.phase !== 'connecting') return;
    this.#feed(member, input);
  }

  // The machine.

  #feed(member: number, input: Input): void {
    const self = this.members[member]!;
    for (const action of self.machine.take(input, this.nowMs)) this.#perform(member, action);
  }

  #perform(member: number, action: Action): void {
    const self = this.members[member]!;
    switch (action.kind) {
      case 'report':
        this.#ask(member, { kind: 'report', report: action.report });
        return;
      case 'read':
        this.#ask(member, action);
        return;
      case 'propose':
      case 'open':
        this.#ask(member, action);
        return;
      case 'watch':
        self.watchedView = null;
        this.#ask(member, { kind: 'watch view', after: action.view });
        return;
      case 'wake':
        self.alarm++;
        this.later(member, Math.max(0, action.atMs - this.nowMs), {
          kind: 'alarm',
          alarm: self.alarm,
        });
        return;
      case 'connect':
        this.#connect(member, action.view);
        return;
      case 'disconnect':
        this.#disconnect(member);
        return;
      case 'end': {
        const { reason } = action;
        const ending = reason.kind === 'job ended' ? reason.view.ended : null;
        if (self.group !== null) this.#leaveGroup(member);
        this.end(member, reason.kind, ending);
        return;
      }
    }
  }

  // Groups.

  #connect(member: number, view: View): void {
    const self = this.members[member]!;
    const number = this.#groupOf(view);
    self.group = number;
    self.op = 0;
    const group = this.groups[number]!;
    group.calls.add(member);
    if (view.members[0]!.id === self.wish.id) this.#ask(member, { kind: 'announce', view: view.number });
    this.#ask(member, { kind: 'watch over', view: view.number });
    this.later(member, this.options.timing.connectMs, { kind: 'connecting is late', group: number });
    if (group.isBroken) {
      this.later(member, this.options.timing.noticeMs(), {
        kind: 'error',
        group: number,
        failure: 'ERR_COLL_INIT',
        lost: [],
      });
    } else if (group.calls.size === group.members.length && !this.#isCut(group)) {
      // Connecting ends with a barrier, which needs all pairs.
      for (const each of group.members) {
        this.later(each, this.options.timing.messageMs(), { kind: 'connected', group: number });
      }
    }
  }

  /** Returns the index of the group of a view. Views of two stores may have the same number. */
  #groupOf(view: View): number {
    const { number, epoch } = view;
    const found = this.groups.findIndex((each) => each.view.number === number && each.view.epoch === epoch);
    if (found >= 0) return found;
    const members = view.members.map(({ id }) => this.members.findIndex(({ wish }) => wish.id === id));
    const fresh = { calls: new Set<number>(), started: [], changes: new Set<number>(), isBroken: false };
    return this.groups.push({ view, members, ...fresh }) - 1;
  }

  #disconnect(member: number): void {
    const self = this.members[member]!;
    const group = self.group;
    if (group === null) return;
    this.#leaveGroup(member);
    if (self.machine.phase === 'connecting')
      this.#feed(member, { kind: 'not connected', failure: 'stopped', unreachable: [] });
  }

  #connected(member: number, number: number): void {
    const self = this.members[member]!;
    if (self.group !== number || self.machine.phase !== 'connecting') return;
    this.#feed(member, { kind: 'connected' });
    const { view } = this.groups[number]!;
    if (self.endedAtMs !== null) this.changesMs.push(this.nowMs - self.endedAtMs);
    self.endedAtMs = null;
    self.hasUnreadWish = false;
    self.watchedOver = null;
    if (view.members.findIndex(({ id }) => id === self.wish.id) < 3)
      this.#ask(member, { kind: 'watch wish', after: view.wishes });
    if (view.decision === 'commit' && self.hasState && self.base + self.steps.length < view.finalSteps)
      this.#apply(member);
    self.averages = null;
    if (view.joined.length > 0) {
      this.#begin(member, 0);
      return;
    }
    self.op = 1;
    this.#begin(member, 1);
  }

  #connectingIsLate(member: number, number: number): void {
    const self = this.members[member]!;
    if (self.group !== number || self.machine.phase !== 'connecting') return;
    const group = this.groups[number]!;
    const missing = group.members.filter(
      (each) => each !== member && (!group.calls.has(each) || this.cuts.has(pair(each, member))),
    );
    this.#leaveGroup(member);
    const unreachable = this.#idsOf(missing).map((id) => ({ member: id, isCertain: false }));
    this.#feed(member, { kind: 'not connected', failure: 'ERR_COLL_INIT in init', unreachable });
  }

  /** Operation 0 gives joined members their state; then each step has two: its averages, and its vote. */
  #begin(member: number, op: number): void {
    const self = this.members[member]!;
    const isReduction = op > 0 && op % 2 === 1;
    this.later(member, isReduction ? this.options.timing.computeMs() : 0.01, {
      kind: 'start',
      group: self.group!,
      op,
    });
  }

  #startOp(member: number, number: number, op: number): void {
    const self = this.members[member]!;
    const group = this.groups[number]!;
    if (self.group !== number || self.machine.phase !== 'training') return;
    self.op = op;
    if (isVote(op)) {
      self.isAsking = self.wantsToLeave;
      if (self.isAsking || self.hasUnreadWish) group.changes.add(op);
    }
    group.started[op] ??= new Set();
    group.started[op].add(member);
    this.later(member, this.options.patience.stallMs, { kind: 'op is late', group: number, op });
    if (group.isBroken || group.started[op].size < group.members.length) return;
    if (this.#isCut(group)) return;
    for (const each of group.members)
      this.later(each, this.options.timing.messageMs(), { kind: 'op ends', group: number, op });
  }

  #endOp(member: number, number: number, op: number): void {
    const self = this.members[member]!;
    if (self.group !== number || self.machine.phase !== 'training' || self.op !== op) return;
    const group = this.groups[number]!;
    if (op === 0) {
      const { joined } = group.view;
      const donor = group.members.find((_, rank) => !joined.includes(group.view.members[rank]!.id));
      if (!self.hasState && donor !== undefined) {
        self.base = group.view.finalSteps;
        self.steps = [];
      }
      self.hasState = true;
      self.op = 1;
      this.#begin(member, 1);
      return;
    }
    if (!isVote(op)) {
      self.averages = `${number}:${self.base + self.steps.length}`;
      self.op = op + 1;
      this.#begin(member, op + 1);
      return;
    }
    this.#apply(member);
    if (self.isAsking) {
      this.#leave(member, 'left');
      return;
    }
    if (self.base + self.steps.length >= this.options.target) {
      this.#leave(member, 'finished');
      return;
    }
    if (group.changes.has(op)) {
      this.#endView(member, null, []);
      return;
    }
    self.op = op + 1;
    this.#begin(member, op + 1);
  }

  #apply(member: number): void {
    const self = this.members[member]!;
    const step = self.base + self.steps.length;
    if (self.averages === null) throw new Error(`${self.wish.id} applies step ${step} without averages`);
    this.applied[step] ??= self.averages;
    if (this.applied[step] !== self.averages) {
      throw new Error(
        `step ${step} is final twice: as ${this.applied[step]}, and as ${self.averages} at ${self.wish.id}`,
      );
    }
    self.steps.push(self.averages);
    self.averages = null;
  }

  #leave(member: number, status: 'left' | 'finished'): void {
    this.#ask(member, { kind: 'report', report: { ...this.#report(member, null, []), isLeaving: true } });
    this.end(member, status);
  }

  #isLate(member: number, number: number, op: number): void {
    const self = this.members[member]!;
    if (self.group !== number || self.machine.phase !== 'training' || self.op !== op) return;
    const group = this.groups[number]!;
    const late = group.members.filter(
      (each) => each !== member && (!group.started[op]?.has(each) || this.cuts.has(pair(each, member))),
    );
    this.#break(null, number, 'ERR_COLL_TIMEOUT', late);
  }

  #falseAlarm(member: number, peer: number): void {
    const self = this.members[member]!;
    if (self.group === null || self.machine.phase !== 'training') return;
    this.#break(null, self.group, 'ERR_COLL_TIMEOUT', [peer]);
  }

  #error(member: number, number: number, failure: string, lost: Report['unreachable']): void {
    const self = this.members[member]!;
    if (self.group !== number) return;
    const others = lost.filter(({ member: id }) => id !== self.wish.id);
    if (self.machine.phase === 'connecting') {
      self.group = null;
      this.#feed(member, { kind: 'not connected', failure, unreachable: [] });
    } else if (self.machine.phase === 'training') this.#endView(member, failure, others);
  }

  #endView(member: number, failure: string | null, unreachable: Report['unreachable']): void {
    const self = this.members[member]!;
    self.endedAtMs = this.nowMs;
    const report = this.#report(member, failure, unreachable);
    self.group = null;
    this.#feed(member, { kind: 'ended', report });
  }

  #report(member: number, failure: string | null, unreachable: Report['unreachable']): Report {
    const self = this.members[member]!;
    return {
      member: self.wish.id,
      view: self.machine.view!.number,
      finalSteps: self.base + self.steps.length,
      isComplete: self.averages !== null,
      hasState: self.hasState,
      wasConnected: true,
      unreachable,
      isLeaving: false,
      isDone: false,
      failure,
    };
  }

  /** A member closes the group of a view that is not over for the others. */
  #leaveGroup(member: number): void {
    const number = this.members[member]!.group!;
    this.members[member]!.group = null;
    this.#break(member, number, 'ERR_COLL_PEER_LOST', [member]);
  }

  /** Breaks a group, unless it is broken: the other members get the same error, each at another time. */
  #break(by: number | null, number: number, code: string, lost: readonly number[]): void {
    const group = this.groups[number];
    if (group === undefined || group.isBroken) return;
    group.isBroken = true;
    const ids = this.#idsOf(lost);
    for (const each of group.members) {
      if (each === by) continue;
      const isCertain = (index: number) => this.members[lost[index]!]!.status === 'killed';
      const isSeen = this.options.timing.endedMs() !== null;
      const unreachable = ids.map((id, index) => ({ member: id, isCertain: isSeen && isCertain(index) }));
      const failure = `${code} in allReduce`;
      this.later(each, this.options.timing.noticeMs(), {
        kind: 'error',
        group: number,
        failure,
        lost: unreachable,
      });
    }
  }

  #isCut({ members }: SimGroup): boolean {
    return this.cuts.size > 0 && members.some((a) => members.some((b) => this.cuts.has(pair(a, b))));
  }

  #idsOf(members: readonly number[]): string[] {
    return members.map((each) => this.members[each]!.wish.id);
  }
}

const isVote = (op: number) => op > 0 && op % 2 === 0;
const pair = (a: number, b: number) => (a < b ? `${a}/${b}` : `${b}/${a}`);
