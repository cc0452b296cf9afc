// Runs the machine of one member: does its actions in the store, and tells it what has happened.
import type { Group } from '@ringwise/collectives';
import type { Chain } from './chain.ts';
import { missedBy } from './connect.ts';
import { hasEnded } from './processes.ts';
import type { Action, End, Input, Machine } from './protocol/machine.ts';
import type { Member, View, Wish } from './protocol/view.ts';

export interface Hooks {
  /** Makes the group of a view. */
  readonly connect: (view: View, signal: AbortSignal) => Promise<Group>;
}

export interface Joined {
  readonly view: View;
  readonly group: Group;
}

/** How a change of the view has ended. */
export type Settled = Joined | End;

export class Driver {
  readonly #id: string;
  readonly #machine: Machine;
  readonly #chain: Chain;
  readonly #hooks: Hooks;
  readonly #host: string;
  #pending: {
    readonly resolve: (settled: Settled) => void;
    readonly reject: (error: unknown) => void;
  } | null = null;
  #watch = new AbortController();
  #connecting = new AbortController();
  #alarm: NodeJS.Timeout | undefined;
  /** The view before the one that was adopted last. */
  #before: View | null = null;
  #failure: unknown = null;
  /** The processes of members and of those that want to join. */
  readonly #processes = new Map<string, Pick<Member, 'host' | 'process'>>();

  constructor(self: Wish, machine: Machine, chain: Chain, hooks: Hooks) {
    this.#id = self.id;
    this.#host = self.host;
    this.#machine = machine;
    this.#chain = chain;
    this.#hooks = hooks;
  }

  /** Tells the machine something, and resolves when it is in a new view or its part in the job has ended. */
  run(input: Input): Promise<Settled> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#feed(input);
    });
  }

  /** Ends everything that is under way. */
  stop(): void {
    clearTimeout(this.#alarm);
    this.#watch.abort();
    this.#connecting.abort();
  }

  #feed(input: Input): void {
    const before = this.#machine.view;
    const actions = this.#machine.take(input, performance.now());
    if (this.#machine.view !== before) this.#before = before;
    for (const action of actions) {
      this.#perform(action).catch((error: unknown) => this.#fail(error));
    }
  }

  #fail(error: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    this.stop();
    this.#pending?.reject(error);
    this.#pending = null;
  }

  #settle(settled: Settled): void {
    this.stop();
    this.#pending?.resolve(settled);
    this.#pending = null;
  }

  async #perform(action: Action): Promise<void> {
    switch (action.kind) {
      case 'report':
        return await this.#chain.report(action.report);
      case 'read':
        return await this.#read(action);
      case 'propose':
        return this.#feed({ kind: 'view', view: await this.#chain.propose(action.view) });
      case 'watch':
        return await this.#watchFor(action.view);
      case 'wake':
        clearTimeout(this.#alarm);
        this.#alarm = setTimeout(
          () => this.#feed({ kind: 'time' }),
          Math.max(0, action.atMs - performance.now()),
        );
        return;
      case 'connect':
        return await this.#connect(action.view);
      case 'disconnect':
        this.#connecting.abort(new Error('the view has ended'));
        return;
      case 'end':
        return this.#settle(action.reason);
    }
  }

  async #read(request: Extract<Action, { kind: 'read' }>): Promise<void> {
    for (const member of this.#machine.view?.members ?? []) this.#processes.set(member.id, member);
    const reading = await this.#chain.read(request);
    for (const { wish } of reading.wishes) if (wish !== null) this.#processes.set(wish.id, wish);
    const seen = [...request.ids, ...reading.wishes.flatMap(({ wish }) => wish?.id ?? [])];
    const dead = seen.filter((id) => {
      const { host, process } = this.#processes.get(id) ?? { host: '', process: null };
      return host === this.#host && hasEnded(process);
    });
    this.#feed({ kind: 'read', reading: { ...reading, ended: new Set([...reading.ended, ...dead]) } });
  }

  async #watchFor(number: number): Promise<void> {
    this.#watch.abort();
    const watch = new AbortController();
    this.#watch = watch;
    const view = await unless(watch.signal, this.#chain.next(number, watch.signal));
    if (view !== undefined) this.#feed({ kind: 'view', view });
  }

  async #connect(view: View): Promise<void> {
    const connecting = new AbortController();
    this.#connecting = connecting;
    const { signal } = connecting;
    if (view.members[0]!.id === this.#id) {
      this.#chain.announce(view, this.#before).catch((error: unknown) => this.#fail(error));
    }
    const watch = unless(signal, this.#chain.over(view.number, signal)).then(() => {
      if (!signal.aborted) this.#feed({ kind: 'over' });
    });
    watch.catch((error: unknown) => this.#fail(error));
    let group: Group;
    try {
      group = await this.#hooks.connect(view, signal);
    } catch (error) {
      connecting.abort();
      const failure = error instanceof Error ? error.message : String(error);
      return this.#feed({ kind: 'not connected', failure, unreachable: missedBy(error, view, this.#id) });
    }
    connecting.abort();
    this.#feed({ kind: 'connected' });
    if (this.#machine.phase === 'training' && this.#machine.view === view)
      return this.#settle({ view, group });
    await group.close().catch(() => {});
  }
}

/** Returns what `call` resolves with; undefined if `signal` has been aborted. */
async function unless<T>(signal: AbortSignal, call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
