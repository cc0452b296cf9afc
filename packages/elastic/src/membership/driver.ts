// Runs the state machine of one member: carries out its actions in the store, and passes it the results as inputs.
import type { Group } from '@ringwise/collectives';
import { ElasticError } from '../errors.ts';
import type { Chain } from './chain.ts';
import { missedBy } from './connect.ts';
import { hasEnded } from './processes.ts';
import type { Action, End, Input, Machine } from './protocol/machine.ts';
import type { Member, View, Wish } from './protocol/view.ts';

export interface Hooks {
  /** Makes the group of a view. */
  readonly connect: (view: View, signal: AbortSignal) => Promise<Group>;
  /** Switches to another store, on the host of a member of `view`. Resolves with false if none can be reached. */
  readonly move: (view: View, signal: AbortSignal) => Promise<boolean>;
}

export interface Joined {
  readonly view: View;
  readonly group: Group;
}

/** The outcome of a change of the view. */
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
    readonly onDecided: () => unknown;
  } | null = null;
  #watch = new AbortController();
  #connecting = new AbortController();
  #alarm: NodeJS.Timeout | undefined;
  /** The view before the last adopted one. */
  #before: View | null = null;
  #failure: unknown = null;
  #lostStore: unknown;
  /** Number of stores that this member has used. Answers of earlier ones are dropped. */
  #stores = 0;
  /** The processes of the members and of the authors of wishes, by id. */
  readonly #processes = new Map<string, Pick<Member, 'host' | 'process'>>();

  constructor(self: Wish, machine: Machine, chain: Chain, hooks: Hooks) {
    this.#id = self.id;
    this.#host = self.host;
    this.#machine = machine;
    this.#chain = chain;
    this.#hooks = hooks;
  }

  /**
   * Passes `input` to the machine, and resolves when this member is in a new view or its membership has ended. Calls
   * `onDecided` whenever a new view has been decided, before its members connect.
   */
  run(input: Input, onDecided: () => unknown = () => {}): Promise<Settled> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject, onDecided };
      this.#feed(input);
    });
  }

  /** The failure of the previous store; undefined while this member still uses its first store. */
  get lostStore(): unknown {
    return this.#lostStore;
  }

  /** Stops all running actions. */
  stop(): void {
    clearTimeout(this.#alarm);
    this.#watch.abort();
    this.#connecting.abort();
  }

  #feed(input: Input): void {
    const before = this.#machine.view;
    const actions = this.#machine.take(input, performance.now());
    if (this.#machine.view !== before) this.#before = before;
    const store = this.#stores;
    for (const action of actions) {
      this.#perform(action, store).catch((error: unknown) => this.#fail(error, store));
    }
  }

  /** Passes the answer of a store to the machine, unless the member has moved to another store meanwhile. */
  #answer(store: number, input: Input): void {
    if (store === this.#stores) this.#feed(input);
  }

  #fail(error: unknown, store: number): void {
    if (this.#failure !== null || store !== this.#stores) return;
    const { phase, view } = this.#machine;
    const isStoreLost = ElasticError.is(error) && error.code === 'ERR_ELASTIC_STORE';
    if (isStoreLost && view !== null && (phase === 'reporting' || phase === 'connecting')) {
      this.#move(view, error).catch((failure: unknown) => this.#give(failure));
    } else this.#give(error);
  }

  async #move(view: View, lost: unknown): Promise<void> {
    this.stop();
    this.#lostStore = lost;
    const store = ++this.#stores;
    const moving = new AbortController();
    this.#watch = moving;
    const hasMoved = await this.#hooks.move(view, moving.signal);
    if (moving.signal.aborted) return;
    if (hasMoved) this.#answer(store, { kind: 'moved', epoch: this.#machine.epoch + 1 });
    else this.#give(lost);
  }

  /** Ends with an error. */
  #give(error: unknown): void {
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

  async #perform(action: Action, store: number): Promise<void> {
    switch (action.kind) {
      case 'report':
        return await this.#chain.report(action.report);
      case 'read':
        return await this.#read(action, store);
      case 'propose':
        return this.#answer(store, { kind: 'view', view: await this.#chain.propose(action.view) });
      case 'open':
        return this.#answer(store, { kind: 'opened', view: await this.#chain.open(action.view) });
      case 'watch':
        return await this.#watchFor(action.view, store);
      case 'wake':
        clearTimeout(this.#alarm);
        this.#alarm = setTimeout(
          () => this.#feed({ kind: 'time' }),
          Math.max(0, action.atMs - performance.now()),
        );
        return;
      case 'connect':
        return await this.#connect(action.view, store);
      case 'disconnect':
        this.#connecting.abort(new Error('the view has ended'));
        return;
      case 'end':
        return this.#settle(action.reason);
    }
  }

  async #read(request: Extract<Action, { kind: 'read' }>, store: number): Promise<void> {
    for (const member of this.#machine.view?.members ?? []) this.#processes.set(member.id, member);
    const reading = await this.#chain.read(request);
    for (const { wish } of reading.wishes) if (wish !== null) this.#processes.set(wish.id, wish);
    const seen = [...request.ids, ...reading.wishes.flatMap(({ wish }) => wish?.id ?? [])];
    const dead = seen.filter((id) => {
      const { host, process } = this.#processes.get(id) ?? { host: '', process: null };
      return host === this.#host && hasEnded(process);
    });
    this.#answer(store, {
      kind: 'read',
      reading: { ...reading, ended: new Set([...reading.ended, ...dead]) },
    });
  }

  async #watchFor(number: number, store: number): Promise<void> {
    this.#watch.abort();
    const watch = new AbortController();
    this.#watch = watch;
    const view = await unless(watch.signal, this.#chain.next(number, watch.signal));
    if (view !== undefined) this.#answer(store, { kind: 'view', view });
  }

  async #connect(view: View, store: number): Promise<void> {
    const connecting = new AbortController();
    this.#connecting = connecting;
    this.#pending?.onDecided();
    const { signal } = connecting;
    if (view.members[0]!.id === this.#id) {
      this.#chain.announce(view, this.#before).catch((error: unknown) => this.#fail(error, store));
    }
    const watch = unless(signal, this.#chain.over(view.number, signal)).then(() => {
      if (!signal.aborted) this.#answer(store, { kind: 'over' });
    });
    watch.catch((error: unknown) => this.#fail(error, store));
    let group: Group;
    try {
      group = await this.#hooks.connect(view, signal);
    } catch (error) {
      connecting.abort();
      const failure = error instanceof Error ? error.message : String(error);
      const unreachable = missedBy(error, view, this.#id);
      return this.#answer(store, { kind: 'not connected', failure, unreachable });
    }
    connecting.abort();
    this.#answer(store, { kind: 'connected' });
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
