// N ranks in one process on one thread, in pure TypeScript: the reference for every other backend. All ranks
// share a hub. An operation waits in a queue until all its peers have called theirs; then the hub compares
// the signatures and writes the memory without interruption. The thread must not block, so there are no Sync
// verbs.
import { allVerbs } from '../all-verbs.ts';
import type { AllToAll, Backend, Operation, Recv, Send, Settle } from '../backend.ts';
import { CollectiveError, type Failure, mismatch, peerLost, timedOut } from '../errors.ts';
import { allocHost, elementsOf } from '../group/buffer.ts';
import { Group } from '../group/group.ts';
import type { Subgroups } from '../group/members/membership.ts';
import { shapeOf, signatureOf } from '../group/signature.ts';
import { wrongOption } from '../options/errors.ts';
import { checkGroupOptions } from '../options/known-options.ts';
import { isReducible } from '../reduce-ops.ts';
import { write } from './arithmetic/arithmetic.ts';
import { execute, expectedFrom, sentTo } from './arithmetic/execute.ts';
import { Mailbox } from './mailbox.ts';

interface Entry<O extends Operation = Operation> {
  readonly rank: number;
  readonly operation: O;
  readonly settle: Settle;
  readonly timer: NodeJS.Timeout;
}

type Side = { readonly rank: number; readonly signature: string };

interface RankState {
  /** Collectives that this rank has called and that have not been executed, in call order. */
  readonly collectives: Entry[];
  /** Sequence number of the last collective that this rank called; -1 before the first. */
  last: number;
  /** All operations of this rank that have not settled. */
  readonly pending: Set<Entry>;
  readonly onIdle: (() => void)[];
  hasLeft: boolean;
  error: CollectiveError | null;
}

/** Returns the backends of `size` ranks, in rank order. */
export function loopback(size: number, name = 'loopback'): Backend[] {
  const hub = new Hub(size, name);
  return Array.from({ length: size }, (_, rank) => ({
    contract: 1,
    name: 'loopback',
    rank,
    size,
    supports: { devices: ['cpu'], verbs: allVerbs, sync: false, reduces: isReducible },
    start: (operation, settle) => {
      hub.enter(rank, operation, settle);
      return null;
    },
    run: () => {
      throw new Error('bug: the loopback backend has no Sync verbs; please report it.');
    },
    alloc: allocHost,
    abort: (cause) => hub.abort(rank, cause),
    close: () => hub.leave(rank),
  }));
}

/**
 * Returns groups of `size` ranks in this process, in rank order. For tests and experiments. Throws
 * ERR_COLL_INVALID for wrong arguments.
 */
export function loopbackGroups(size: number, options: { name?: string; timeoutMs?: number } = {}): Group[] {
  const calls = { error: (failure: Failure) => new CollectiveError(failure, null) };
  if (!Number.isSafeInteger(size) || size < 1)
    throw calls.error(wrongOption('loopbackGroups', 'size', 'a number of ranks', size));
  checkGroupOptions(calls, 'loopbackGroups', options);
  const { name = 'loopback', timeoutMs = 300_000 } = options;
  const made = new Map<string, Made>();
  return loopback(size, name).map(
    (backend, rank) => new Group(backend, { name, timeoutMs, subgroups: subgroupsOf(rank, '', made) }),
  );
}

interface Made {
  readonly backends: readonly Backend[];
  /** Members that have not fetched their backend yet. */
  left: number;
}

/**
 * Returns the function that makes subgroups of `rank`. The first member makes the backends for all members
 * and stores them in `made` under their path; the last member removes them.
 */
function subgroupsOf(rank: number, path: string, made: Map<string, Made>): Subgroups {
  return async ({ members, key, name }) => {
    const own = members.indexOf(rank);
    const entryPath = `${path}/${key}`;
    const { length } = members;
    if (!made.has(entryPath)) made.set(entryPath, { backends: loopback(length, name), left: length });
    const entry = made.get(entryPath)!;
    if (--entry.left === 0) made.delete(entryPath);
    return { backend: entry.backends[own]!, subgroups: subgroupsOf(own, entryPath, made) };
  };
}

class Hub {
  readonly #size: number;
  readonly #name: string;
  readonly #ranks: RankState[];
  readonly #mailbox = new Mailbox<Entry<Send>, Entry<Recv>>();
  #failure: Failure | null = null;
  #isScheduled = false;

  constructor(size: number, name: string) {
    this.#size = size;
    this.#name = name;
    this.#ranks = Array.from({ length: size }, () => ({
      collectives: [],
      last: -1,
      pending: new Set(),
      onIdle: [],
      hasLeft: false,
      error: null,
    }));
  }

  enter(rank: number, operation: Operation, settle: Settle): void {
    const state = this.#ranks[rank] as RankState;
    const timer = setTimeout(() => this.#expire(entry), operation.timeoutMs);
    const entry: Entry = { rank, operation, settle, timer };
    state.pending.add(entry);
    if (operation.verb === 'send') this.#mailbox.send(entry as Entry<Send>);
    else if (operation.verb === 'recv') this.#mailbox.recv(entry as Entry<Recv>);
    else {
      state.collectives.push(entry);
      state.last = operation.seq;
    }
    this.#schedule();
  }

  abort(rank: number, cause: CollectiveError): void {
    const state = this.#ranks[rank] as RankState;
    if (this.#failure !== null || state.hasLeft) return;
    state.error = cause;
    this.#fail(cause);
  }

  async leave(rank: number): Promise<void> {
    const state = this.#ranks[rank] as RankState;
    if (state.pending.size > 0) await new Promise<void>((resolve) => state.onIdle.push(resolve));
    state.hasLeft = true;
    this.#schedule();
  }

  /** Defers the work to a microtask, so that `start` returns before anything settles. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#failure === null) this.#advance();
      else this.#fail(this.#failure);
    });
  }

  #advance(): void {
    while (this.#ranks.every(({ collectives }) => collectives.length > 0)) {
      const entries = this.#ranks.map(({ collectives }) => collectives[0] as Entry);
      if (!this.#agree(entries, signatureOf) || !this.#agreeInPairs(entries)) return;
      for (const { collectives } of this.#ranks) collectives.shift();
      execute(entries.map(({ operation }) => operation));
      for (const entry of entries) this.#end(entry);
    }
    for (const [send, recv] of this.#mailbox.pairs()) {
      if (!this.#agree<Send | Recv>([send, recv], ({ buffer }) => shapeOf(buffer))) return;
      write(recv.operation.buffer, elementsOf(send.operation.buffer));
      this.#end(send);
      this.#end(recv, undefined, send.rank);
    }
    this.#noticeLoss();
  }

  /** Fails the group if two of these operations differ in `key`. Returns whether all agree. */
  #agree<O extends Operation>(entries: readonly Entry<O>[], key: (operation: O) => string): boolean {
    const first = entries[0] as Entry<O>;
    const other = entries.find(({ operation }) => key(operation) !== key(first.operation));
    if (other === undefined) return true;
    const [one, two] = [other, first].map(({ rank, operation }) => ({
      rank,
      signature: signatureOf(operation),
    })) as [Side, Side];
    this.#fail(mismatch(first.operation.verb, first.operation.seq, one, two));
    return false;
  }

  /**
   * Fails the group if a rank of an allToAll sends another number of elements than its peer expects. Returns
   * whether all agree.
   */
  #agreeInPairs(entries: readonly Entry[]): boolean {
    if (entries[0]?.operation.verb !== 'allToAll') return true;
    for (const { rank: to, operation } of entries as readonly Entry<AllToAll>[]) {
      for (const { rank: from, operation: sender } of entries as readonly Entry<AllToAll>[]) {
        const [sends, expects] = [sentTo(to, this.#size, sender), expectedFrom(from, this.#size, operation)];
        if (sends === expects) continue;
        const { verb, seq, input } = operation;
        const one = { rank: from, signature: `${verb} with ${sends} × ${input.dtype} for rank ${to}` };
        const two = { rank: to, signature: `${verb} with ${expects} × ${input.dtype} from rank ${from}` };
        this.#fail(mismatch(verb, seq, one, two));
        return false;
      }
    }
    return true;
  }

  /** Fails the group if an operation waits for a rank that has left. */
  #noticeLoss(): void {
    const isLost = (rank: number) => this.#ranks[rank]?.hasLeft === true;
    if (![...this.#ranks.keys()].some(isLost)) return;
    for (const entry of this.#ranks.flatMap(({ pending }) => [...pending])) {
      const missing = this.#missing(entry);
      // A receive from any rank is stuck only if all other ranks have left.
      const isStuck = isFromAny(entry.operation) ? missing.every(isLost) : missing.some(isLost);
      const lost = missing.find(isLost);
      if (!isStuck || lost === undefined) continue;
      const { verb, seq } = entry.operation;
      this.#fail(peerLost(verb, seq, lost, 'it has closed the group'));
      return;
    }
  }

  #expire(entry: Entry): void {
    const { verb, seq, timeoutMs } = entry.operation;
    this.#fail(timedOut(verb, seq, this.#missing(entry), timeoutMs));
  }

  /** Returns the ranks that `entry` still waits for. */
  #missing({ rank, operation }: Entry): number[] {
    const { verb, seq } = operation;
    if (isFromAny(operation)) return [...this.#ranks.keys()].filter((other) => other !== rank);
    if (verb === 'send' || verb === 'recv') return [(operation as Send | Recv).peer];
    return this.#ranks.flatMap(({ last }, other) => (last < seq ? [other] : []));
  }

  /** Fails the group. The first failure stays, and every pending and later operation settles with it. */
  #fail(failure: Failure): void {
    this.#failure ??= failure;
    this.#mailbox.clear();
    for (const [rank, state] of this.#ranks.entries()) {
      state.collectives.length = 0;
      const site = { group: this.#name, rank, size: this.#size };
      state.error ??= new CollectiveError(this.#failure, site);
      for (const entry of state.pending) this.#end(entry, state.error);
    }
  }

  #end(entry: Entry, error?: CollectiveError, source?: number): void {
    const { pending, onIdle } = this.#ranks[entry.rank] as RankState;
    clearTimeout(entry.timer);
    pending.delete(entry);
    entry.settle(error, source);
    if (pending.size === 0) for (const resolve of onIdle.splice(0)) resolve();
  }
}

function isFromAny(operation: Operation): boolean {
  return operation.verb === 'recv' && operation.peer === -1;
}
