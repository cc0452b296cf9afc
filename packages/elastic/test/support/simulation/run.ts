// Runs one schedule, which a seed determines, and checks what may never happen.
import type { View } from '../../../src/membership/protocol/view.ts';
import type { Event, Status } from './parts.ts';
import { EventQueue } from './queue.ts';
import { Random } from './random.ts';
import { World } from './world.ts';

export interface Scale {
  readonly fewest: number;
  readonly most: number;
  /** Most faults of a schedule. */
  readonly faults: number;
  /** Number of hosts; with several, faults also hit a whole host. */
  readonly hosts?: number;
}

export interface Outcome {
  readonly members: number;
  readonly views: number;
  readonly statuses: readonly Status[];
  readonly endings: readonly string[];
  /** Whether members went on in another store. */
  readonly hasMoved: boolean;
  readonly operations: number;
  readonly events: number;
  readonly changesMs: readonly number[];
  readonly faults: readonly string[];
}

/** Kills a member at a moment of the protocol. */
type Trap = 'before propose' | 'after propose' | 'connecting' | 'reporting' | 'vote ends' | 'averages';
const traps: readonly Trap[] = [
  'before propose',
  'after propose',
  'connecting',
  'reporting',
  'vote ends',
  'averages',
];

/** Virtual time within which every member must have ended. */
const mostMs = 300_000;
const mostEvents = 5_000_000;

/** Throws an error that says what went wrong. */
export function runSchedule(seed: number, scale: Scale): Outcome {
  const random = new Random(seed);
  const size = scale.fewest + random.whole(scale.most - scale.fewest + 1);
  const hosts = scale.hosts ?? 1;
  const queue = new EventQueue();
  const launcherTells = random.pick([0, 0.7, 1]);
  const world = new World(
    {
      settings: {
        size,
        min: random.chance(0.3) ? 2 : 1,
        lastCallMs: 5_000,
        joinTimeoutMs: 20_000,
        founders: [],
      },
      patience: { settleMs: 200, stallMs: 2_000 },
      timing: {
        messageMs: () => (random.chance(0.01) ? random.between(1, 20) : random.between(0.05, 1)),
        serviceMs: 0.025,
        computeMs: () => random.between(1, 5),
        noticeMs: () => random.between(0.1, 5),
        endedMs: () => (random.chance(launcherTells) ? random.between(1, 30) : null),
        connectMs: 3_000,
        storeMs: 15_000,
      },
      target: 20 + random.whole(20),
      hosts,
    },
    (event) => queue.push(event),
  );
  const schedule = new Schedule(world, random, queue, size, scale.faults, hosts);
  let events = 0;
  for (let event = queue.pop(); event !== undefined; event = queue.pop()) {
    if (event.atMs > mostMs || ++events > mostEvents) {
      throw new Error(`at ${Math.round(event.atMs)} ms, after ${events} events, ${described(world)}`);
    }
    world.nowMs = Math.max(world.nowMs, event.atMs);
    const until = world.members[event.member]?.stoppedUntilMs ?? 0;
    const isOfProcess = !['request', 'start process', 'kill'].includes(event.what.kind);
    if (isOfProcess && until > world.nowMs) queue.push({ ...event, atMs: until });
    else schedule.execute(event);
  }
  check(world, schedule);
  return {
    members: world.members.length,
    views: world.hosts.reduce((sum, { store }) => sum + store.views.filter(Boolean).length, 0),
    statuses: world.members.map(({ status }) => status),
    endings: world.members.flatMap(({ ending }) => ending ?? []),
    hasMoved: world.groups.some(({ view, started }) => view.epoch > 0 && started.length > 1),
    operations: world.hosts.reduce((sum, { store }) => sum + store.operations, 0),
    events,
    changesMs: world.changesMs,
    faults: schedule.done,
  };
}

class Schedule {
  /** What the schedule did, for messages. */
  readonly done: string[] = [];
  /** Whether a living member may be left out: some were late, or cut off. */
  mayLeaveOut = false;
  readonly #world: World;
  readonly #random: Random;
  readonly #queue: EventQueue;
  readonly #traps: { readonly trap: Trap; skip: number }[] = [];

  /** Whether a launcher gives the slots. */
  readonly #hasSlots: boolean;
  #nextSlot: number;

  readonly #hosts: number;

  constructor(world: World, random: Random, queue: EventQueue, size: number, most: number, hosts: number) {
    this.#hosts = hosts;
    this.#hasSlots = random.chance(0.7) || hosts > 1;
    this.#nextSlot = size;
    for (let slot = 0; slot < size; slot++) {
      const what = { kind: 'start process', slot: this.#hasSlots ? slot : null } as const;
      queue.push({ atMs: random.between(0, 50), member: 0, what });
    }
    this.#world = world;
    this.#random = random;
    this.#queue = queue;
    const faults = random.whole(most + 1);
    const together = random.between(20, 200);
    for (let index = 0; index < faults; index++) {
      const atMs = random.chance(0.4) ? together + random.between(0, 3) : random.between(20, 250);
      if (hosts > 1 && random.chance(0.5)) this.#addOfHost(atMs);
      else this.#add(atMs, size);
    }
  }

  /** Loses a host, or cuts its network: from all other hosts, or from some. */
  #addOfHost(atMs: number): void {
    const random = this.#random;
    const host = random.chance(0.6) ? 0 : random.whole(this.#hosts);
    const isKill = random.chance(0.5);
    const isPart = random.chance(0.3);
    const others = Array.from({ length: this.#hosts }, (_, each) => each).filter(
      (each) => each !== host && (!isPart || random.chance(0.5)),
    );
    this.mayLeaveOut = true;
    const what = isKill ? `lose host ${host}` : `cut host ${host} from ${others}`;
    this.done.push(`${what} at ${atMs.toFixed(1)} ms`);
    this.#at(atMs, () => (isKill ? this.#world.loseHost(host) : this.#world.cutHost(host, others)));
  }

  #add(atMs: number, size: number): void {
    const random = this.#random;
    const member = random.whole(size);
    const at = (what: Event['what']) => this.#queue.push({ atMs, member, what });
    const note = (text: string) => this.done.push(`${text} at ${atMs.toFixed(1)} ms`);
    switch (random.whole(9)) {
      case 0:
      case 1:
        note(`kill ${member}`);
        at({ kind: 'kill' });
        // The launcher starts another process in the slot.
        if (random.chance(0.5)) this.#at(atMs + random.between(5, 500), () => this.#restart(member));
        return;
      case 2: {
        const trap = random.pick(traps);
        this.#traps.push({ trap, skip: random.whole(4) });
        this.done.push(`kill at ${trap}`);
        return;
      }
      case 3: {
        const forMs = random.chance(0.5) ? random.between(10, 300) : random.between(300, 8_000);
        note(`stop ${member} for ${forMs.toFixed(0)} ms`);
        this.mayLeaveOut = true;
        at({ kind: 'stop', forMs });
        return;
      }
      case 4:
        note(`leave ${member}`);
        at({ kind: 'leave' });
        return;
      case 5:
        note('join');
        at({ kind: 'start process', slot: this.#hasSlots ? this.#nextSlot++ : null });
        return;
      case 6: {
        const peer = random.whole(size);
        if (peer === member) return;
        note(`false alarm of ${member} about ${peer}`);
        this.mayLeaveOut = true;
        at({ kind: 'false alarm', peer });
        return;
      }
      case 7:
        this.#cut(atMs, size);
        return;
      default:
        note(`cut ${member} off from the store`);
        this.mayLeaveOut = true;
        this.#at(atMs, () => this.#world.cutOffStore(member));
        return;
    }
  }

  /** Cuts one pair of members, or all pairs between two sides, sometimes one side from the store as well. */
  #cut(atMs: number, size: number): void {
    const random = this.#random;
    this.mayLeaveOut = true;
    const isPair = random.chance(0.4);
    const side = Array.from({ length: size }, () => random.chance(0.5));
    const [a, b] = [random.whole(size), random.whole(size)];
    const losesStore = !isPair && random.chance(0.5);
    this.done.push(
      `cut ${isPair ? `${a} from ${b}` : `${side.map(Number).join('')}${losesStore ? ' and the store' : ''}`} at ${atMs.toFixed(1)} ms`,
    );
    this.#at(atMs, () => {
      if (isPair) {
        if (a !== b) this.#world.cut(a, b);
        return;
      }
      for (let x = 0; x < size; x++) {
        if (side[x] && losesStore) this.#world.cutOffStore(x);
        for (let y = 0; y < x; y++) if (side[x] !== side[y]) this.#world.cut(x, y);
      }
    });
  }

  #restart(member: number): void {
    const self = this.#world.members[member];
    if (self?.status !== 'killed' || this.#restarted.has(member)) return;
    this.#restarted.add(member);
    this.#world.startProcess(self.wish.slot);
  }

  readonly #restarted = new Set<number>();

  readonly #calls: { readonly atMs: number; readonly call: () => void }[] = [];

  #at(atMs: number, call: () => void): void {
    this.#calls.push({ atMs, call });
  }

  execute(event: Event): void {
    const world = this.#world;
    for (const due of this.#calls.filter(({ atMs }) => atMs <= world.nowMs)) {
      due.call();
      this.#calls.splice(this.#calls.indexOf(due), 1);
    }
    const { what, member } = event;
    const isPropose = what.kind === 'request' && what.request.kind === 'propose';
    if (isPropose && this.#springs('before propose', member)) return;
    if (what.kind === 'op ends') {
      if (what.op > 0 && this.#springs(what.op % 2 === 0 ? 'vote ends' : 'averages', member)) return;
    }
    world.execute(event);
    if (isPropose) this.#springs('after propose', member);
    const phase = world.members[member]?.machine.phase;
    if (phase === 'connecting' || phase === 'reporting') this.#springs(phase, member);
  }

  #springs(trap: Trap, member: number): boolean {
    const found = this.#traps.findIndex((each) => each.trap === trap);
    const self = this.#world.members[member];
    if (found < 0 || self === undefined || self.status !== 'running') return false;
    if (this.#traps[found]!.skip-- > 0) return false;
    this.#traps.splice(found, 1);
    this.done.push(`killed ${member} at ${trap} (${this.#world.nowMs.toFixed(1)} ms)`);
    this.#world.end(member, 'killed');
    return true;
  }
}

function check(world: World, schedule: Schedule): void {
  const say = (text: string) => {
    throw new Error(`${text}; ${described(world)}; faults: ${schedule.done.join(', ')}`);
  };
  for (const [index, { status, ending }] of world.members.entries()) {
    if (status === 'running') say(`member ${index} hangs`);
    if (ending?.includes('expected at most one step')) say(`member ${index}: ${ending}`);
    if (status === 'left out' && !schedule.mayLeaveOut)
      say(`member ${index} was left out although nothing delayed it`);
  }
  const views = world.applied.map((content) => Number(content.split(':')[0]));
  if (views.some((view, index) => index > 0 && view < views[index - 1]!))
    say(`views go back: ${views.join(' ')}`);
  for (const { store } of world.hosts) checkChain(store.views, say);
}

function checkChain(views: readonly View[], say: (text: string) => void): void {
  views.forEach((view, number) => {
    if (view.number !== number) say(`view ${view.number} is stored as ${number}`);
    const before = views[number - 1];
    if (before !== undefined && view.finalSteps < before.finalSteps)
      say(`final steps go back at view ${number}`);
    if (new Set(view.members.map(({ slot }) => slot)).size < view.members.length)
      say(`view ${number} has a slot twice`);
  });
}

function described(world: World): string {
  const states = world.members.map(
    ({ status, machine, base, steps }, index) =>
      `${index} ${status} (${machine.phase}, view ${machine.view?.number ?? 'none'}, ${base + steps.length} steps)`,
  );
  return `members: ${states.slice(0, 12).join(', ')}`;
}
