// One schedule that a test writes by hand, for a race that has to happen exactly so: the test executes the messages of
// the simulated world up to a moment, loses some of them, or ends a process there. All messages take equally long, so
// that the order is always the same.
import type { View } from '../../../src/membership/protocol/view.ts';
import type { Event, Status, Timing } from './parts.ts';
import { EventQueue } from './queue.ts';
import { World } from './world.ts';

export interface SceneOptions {
  /** Number of founding members, in the slots from 0 on. Default 3. */
  readonly size?: number;
  readonly hosts?: number;
  /** Number of steps of the training. Default 8. */
  readonly target?: number;
  readonly timing?: Partial<Timing>;
}

const timing: Timing = {
  messageMs: () => 1,
  serviceMs: 0,
  computeMs: () => 5,
  noticeMs: () => 2,
  endedMs: () => 10,
  connectMs: 3_000,
  storeMs: 15_000,
};

/** Far more events than a schedule has. */
const mostEvents = 1_000_000;

export class Scene {
  readonly world: World;
  readonly #queue = new EventQueue();
  #events = 0;

  constructor({ size = 3, hosts = 1, target = 8, timing: given = {} }: SceneOptions = {}) {
    this.world = new World(
      {
        settings: { size, min: 1, lastCallMs: 5_000, joinTimeoutMs: 20_000, founders: [] },
        patience: { settleMs: 200, stallMs: 2_000 },
        timing: { ...timing, ...given },
        ...{ target, hosts },
      },
      (event) => this.#queue.push(event),
    );
    for (let slot = 0; slot < size; slot++) this.world.startProcess(slot);
  }

  /** Executes events until `isThere` returns true after one, which it gets. */
  until(isThere: (event: Event) => boolean): this {
    for (let event = this.#next(); event !== null; event = this.#next()) {
      this.#execute(event);
      if (isThere(event)) return this;
    }
    throw new Error('the scene has ended before the moment that the test waits for');
  }

  /** Executes events until the next one is one of `which`; it stays the next one. */
  before(which: (event: Event) => boolean): this {
    for (let event = this.#next(); event !== null; event = this.#next()) {
      if (which(event)) {
        this.#put([event, ...this.#all()]);
        return this;
      }
      this.#execute(event);
    }
    throw new Error('the scene has ended before the moment that the test waits for');
  }

  /** Executes events until a member has applied `steps` steps. */
  untilApplied(member: number, steps: number): this {
    return this.until(() => this.stepsOf(member).length === steps);
  }

  /** Drops what is on its way. */
  lose(which: (event: Event) => boolean): this {
    this.#put(this.#all().filter((event) => !which(event)));
    return this;
  }

  kill(...members: readonly number[]): this {
    for (const member of members) this.world.end(member, 'killed');
    return this;
  }

  /** Executes all other events, and checks that no member waits for ever. */
  finish(): this {
    for (let event = this.#next(); event !== null; event = this.#next()) this.#execute(event);
    const hanging = this.world.members.findIndex(({ status }) => status === 'running');
    if (hanging >= 0) throw new Error(`member ${hanging} hangs`);
    return this;
  }

  get statuses(): readonly Status[] {
    return this.world.members.map(({ status }) => status);
  }

  /** The views of the store with which the job began. */
  get views(): readonly View[] {
    return this.world.store.views;
  }

  /** Slots of the members of each view. */
  get slots(): readonly (readonly number[])[] {
    return this.views.map(({ members }) => members.map(({ slot }) => slot));
  }

  /** The steps that a member has applied: in which view, and after how many steps, their averages were computed. */
  stepsOf(member: number): readonly string[] {
    return this.world.members[member]!.steps;
  }

  #next(): Event | null {
    if (++this.#events > mostEvents) throw new Error('the scene does not end');
    return this.#queue.pop() ?? null;
  }

  #execute(event: Event): void {
    this.world.nowMs = Math.max(this.world.nowMs, event.atMs);
    this.world.execute(event);
  }

  #all(): Event[] {
    const all: Event[] = [];
    for (let event = this.#queue.pop(); event !== undefined; event = this.#queue.pop()) all.push(event);
    return all;
  }

  #put(events: readonly Event[]): void {
    for (const event of events) this.#queue.push(event);
  }
}
