// N ranks in one process and on one thread, in pure TypeScript: the reference that every other backend is held to.
// All ranks share a hub. An operation is queued until its peers have called theirs; then the signatures are compared
// and the memory is written, all in one go. The thread must not block, so there are no Sync verbs here.
import type {
  AllGather,
  AllReduce,
  Backend,
  Broadcast,
  Operation,
  Recv,
  ReduceScatter,
  Send,
  Settle,
} from '../backend.ts';
import { allocHost, type BufferView, elementsOf } from '../buffer.ts';
import { CollectiveError, type Failure, mismatch, peerLost, timedOut } from '../errors.ts';
import { Group } from '../group.ts';
import { isReducible } from '../reduce-ops.ts';
import { shapeOf, signatureOf } from '../signature.ts';
import { reduce, write } from './arithmetic.ts';

interface Entry {
  readonly rank: number;
  readonly operation: Operation;
  readonly settle: Settle;
  readonly timer: NodeJS.Timeout;
}

type Side = { readonly rank: number; readonly signature: string };

interface RankState {
  /** Collectives that this rank has called and that have not been executed, in call order. */
  readonly collectives: Entry[];
  /** How many collectives it has called in all. */
  called: number;
  /** Everything that has not settled. */
  readonly pending: Set<Entry>;
  readonly onIdle: (() => void)[];
  hasLeft: boolean;
  error: CollectiveError | null;
}

/** The backends of `size` ranks, in rank order. */
export function loopback(size: number, name = 'loopback'): Backend[] {
  const hub = new Hub(size, name);
  return Array.from({ length: size }, (_, rank) => ({
    contract: 1,
    name: 'loopback',
    rank,
    size,
    supports: {
      devices: ['cpu'],
      verbs: ['allReduce', 'broadcast', 'allGather', 'reduceScatter', 'send', 'recv', 'barrier'],
      sync: false,
      reduces: isReducible,
    },
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

/** Groups of `size` ranks in this process, in rank order: for tests and for trying things out. */
export function loopbackGroups(size: number, options: { name?: string; timeoutMs?: number } = {}): Group[] {
  const { name = 'loopback', timeoutMs = 300_000 } = options;
  return loopback(size, name).map((backend) => new Group(backend, { name, timeoutMs }));
}

class Hub {
  readonly #size: number;
  readonly #name: string;
  readonly #ranks: RankState[];
  /** Sends and receives by sender and receiver, in call order. */
  readonly #pairs = new Map<string, { readonly sends: Entry[]; readonly recvs: Entry[] }>();
  #failure: Failure | null = null;
  #isScheduled = false;

  constructor(size: number, name: string) {
    this.#size = size;
    this.#name = name;
    this.#ranks = Array.from({ length: size }, () => ({
      collectives: [],
      called: 0,
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
    if (operation.verb === 'send') this.#pairOf(rank, operation.peer).sends.push(entry);
    else if (operation.verb === 'recv') this.#pairOf(operation.peer, rank).recvs.push(entry);
    else {
      state.collectives.push(entry);
      state.called++;
    }
    this.#schedule();
  }

  abort(rank: number, cause: CollectiveError): void {
    if (this.#failure !== null) return;
    (this.#ranks[rank] as RankState).error = cause;
    this.#fail(cause);
  }

  async leave(rank: number): Promise<void> {
    const state = this.#ranks[rank] as RankState;
    if (state.pending.size > 0) await new Promise<void>((resolve) => state.onIdle.push(resolve));
    state.hasLeft = true;
    this.#schedule();
  }

  /** Later in this turn of the event loop, so that `start` returns before anything settles. */
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
      if (!this.#agree(entries, signatureOf)) return;
      for (const { collectives } of this.#ranks) collectives.shift();
      executeCollective(entries.map(({ operation }) => operation));
      for (const entry of entries) this.#end(entry);
    }
    for (const { sends, recvs } of this.#pairs.values()) {
      while (sends.length > 0 && recvs.length > 0) {
        const entries = [sends[0] as Entry, recvs[0] as Entry];
        if (!this.#agree(entries, (operation) => shapeOf((operation as Send | Recv).buffer))) return;
        sends.shift();
        recvs.shift();
        const [from, to] = entries.map(({ operation }) => (operation as Send | Recv).buffer);
        write(to as BufferView, elementsOf(from as BufferView));
        for (const entry of entries) this.#end(entry);
      }
    }
    this.#noticeLoss();
  }

  /** Fails the group if two of these operations that should be the same differ in what `key` says of them. */
  #agree(entries: readonly Entry[], key: (operation: Operation) => string): boolean {
    const first = entries[0] as Entry;
    const other = entries.find(({ operation }) => key(operation) !== key(first.operation));
    if (other === undefined) return true;
    const [one, two] = [other, first].map(({ rank, operation }) => ({
      rank,
      signature: signatureOf(operation),
    })) as [Side, Side];
    this.#fail(mismatch(first.operation.verb, first.operation.seq, one, two));
    return false;
  }

  /** Fails the group if an operation waits for a rank that has left. */
  #noticeLoss(): void {
    const isLost = (rank: number) => this.#ranks[rank]?.hasLeft === true;
    const stuck = this.#ranks
      .flatMap(({ pending }) => [...pending])
      .find((e) => this.#missing(e).some(isLost));
    if (stuck === undefined) return;
    const { verb, seq } = stuck.operation;
    const lost = this.#missing(stuck).find(isLost) as number;
    this.#fail(peerLost(verb, seq, lost, 'it has closed the group'));
  }

  #expire(entry: Entry): void {
    const { verb, seq, timeoutMs } = entry.operation;
    this.#fail(timedOut(verb, seq, this.#missing(entry), timeoutMs));
  }

  /** The ranks that have not called the operation which `entry` waits for. */
  #missing({ operation }: Entry): number[] {
    if (operation.verb === 'send' || operation.verb === 'recv') return [operation.peer];
    return this.#ranks.flatMap(({ called }, rank) => (called <= operation.seq ? [rank] : []));
  }

  /** The first failure stays; every pending and later operation settles with it. */
  #fail(failure: Failure): void {
    this.#failure ??= failure;
    this.#pairs.clear();
    for (const [rank, state] of this.#ranks.entries()) {
      state.collectives.length = 0;
      const site = { group: this.#name, rank, size: this.#size };
      state.error ??= new CollectiveError(this.#failure, site);
      for (const entry of state.pending) this.#end(entry, state.error);
    }
  }

  #end(entry: Entry, error?: CollectiveError): void {
    const { pending, onIdle } = this.#ranks[entry.rank] as RankState;
    clearTimeout(entry.timer);
    pending.delete(entry);
    entry.settle(error);
    if (pending.size === 0) for (const resolve of onIdle.splice(0)) resolve();
  }

  #pairOf(from: number, to: number): { readonly sends: Entry[]; readonly recvs: Entry[] } {
    const key = `${from}>${to}`;
    const pair = this.#pairs.get(key) ?? { sends: [], recvs: [] };
    this.#pairs.set(key, pair);
    return pair;
  }
}

/** All ranks' parts of one collective, in rank order. They agree in everything but memory and factor. */
function executeCollective(operations: readonly Operation[]): void {
  const first = operations[0] as Operation;
  switch (first.verb) {
    case 'allReduce': {
      const all = operations as AllReduce[];
      const result = reduce(first.op, all);
      for (const { buffer } of all) write(buffer, result);
      break;
    }
    case 'broadcast': {
      const all = operations as Broadcast[];
      const source = elementsOf((all[first.root] as Broadcast).buffer);
      for (const [rank, { buffer }] of all.entries()) if (rank !== first.root) write(buffer, source);
      break;
    }
    case 'allGather': {
      const all = operations as AllGather[];
      for (const { output } of all) {
        const elements = elementsOf(output);
        for (const [rank, { input }] of all.entries())
          elements.set(elementsOf(input) as never, rank * input.count);
      }
      break;
    }
    case 'reduceScatter': {
      const all = operations as ReduceScatter[];
      const result = reduce(
        first.op,
        all.map(({ input, factor }) => ({ buffer: input, factor })),
      );
      for (const [rank, { output }] of all.entries()) {
        write(output, result.subarray(rank * output.count, (rank + 1) * output.count));
      }
      break;
    }
  }
}
