// The collectives of one rank, in call order. When a rank calls one, it posts its signature to all others,
// together with its data if they are short. A collective begins when all earlier ones have ended here and all
// ranks have posted the same signature; until then no buffer is touched.
import type { AllToAll, CollectiveOperation, Settle } from '../../backend.ts';
import { detachedBeforeTurn, type Failure, mismatch, peerLost } from '../../errors.ts';
import { hasDetached } from '../../group/operation-memory.ts';
import { signatureOf } from '../../group/signature.ts';
import { expectedFrom, sentTo } from '../arithmetic/execute.ts';
import { type Carrier, Execution, isInline } from './execution.ts';
import type { Post } from './frames.ts';
import type { Entry, Pending } from './pending.ts';
import { type Plan, planOf } from './plan.ts';

interface Called {
  readonly entry: Entry<CollectiveOperation>;
  readonly plan: Plan;
  readonly post: Omit<Post, 'bytes'>;
}

export interface CollectivesContext extends Carrier {
  readonly rank: number;
  readonly size: number;
  readonly pending: Pending;
  readonly post: (to: number, post: Post) => void;
  readonly fail: (failure: Failure) => void;
  /** Returns whether this rank has noticed a failure. No collective begins after that. */
  readonly isFailing: () => boolean;
  /** `whyNoPosts` and `whyNoData` return why no more posts, or data, will arrive from a rank, or null. */
  readonly whyNoPosts: (rank: number) => string | null;
  readonly whyNoData: (rank: number) => string | null;
  /** Returns why a rank will not receive data that is still in this process, or null if it may. */
  readonly whyNotTaken: (rank: number) => string | null;
}

const noBytes = new Uint8Array(0);

export class Collectives {
  readonly #context: CollectivesContext;
  readonly #others: readonly number[];
  /** Collectives that this rank has called and that have not ended, in call order. */
  #called: Called[] = [];
  /** Posts of collectives that have not begun, by sequence number and rank. */
  readonly #posts = new Map<number, Map<number, Post>>();
  #running: Execution | null = null;

  constructor(context: CollectivesContext) {
    this.#context = context;
    this.#others = Array.from({ length: context.size }, (_, other) => other).filter(
      (other) => other !== context.rank,
    );
  }

  start(operation: CollectiveOperation, settle: Settle): void {
    const { rank, size, pending, post: send } = this.#context;
    const entry = pending.add(operation, settle);
    const plan = planOf(operation, rank, size);
    const { seq } = operation;
    const post = {
      kind: 'post' as const,
      seq,
      signature: signatureOf(operation),
      factor: 'factor' in operation ? textOf(operation.factor) : '1',
      counts: operation.verb === 'allToAll' ? this.#countsOf(operation) : null,
    };
    const called = { entry, plan, post };
    this.#called.push(called);
    for (const to of this.#others) {
      const bytes = plan.sends[to]!;
      send(to, { ...post, bytes: isInline(bytes) ? bytes : noBytes });
    }
    for (const [from, theirs] of this.#postsOf(seq)) if (!this.#agrees(called, from, theirs)) return;
    this.#advance();
  }

  /** Handles the post of a rank: that rank has called a collective. */
  posted(from: number, post: Post): void {
    this.#postsOf(post.seq).set(from, post);
    const called = this.#called.find(({ entry }) => entry.operation.seq === post.seq);
    if (called === undefined || !this.#agrees(called, from, post)) return;
    this.#advance();
  }

  /** Receives data; see DataEvents.onData. */
  accept(from: number, stream: number, id: number, bytes: Uint8Array): number {
    const [first] = this.#called;
    // The sender may be ahead: it has ended a collective that still runs here.
    if (this.#running === null || first === undefined || id !== idOf(first.entry.operation)) return 0;
    if (this.#failsDetached(first.entry.operation)) return bytes.length;
    return this.#running.accept(from, stream, bytes);
  }

  /** Ranks that the oldest collective waits for; all later collectives wait for them too. Empty if none is pending. */
  get waitsFor(): readonly number[] {
    const [first] = this.#called;
    return first === undefined ? [] : this.missing(first.entry.operation);
  }

  /** Returns the ranks that a collective waits for. */
  missing(operation: CollectiveOperation): readonly number[] {
    const absent = this.#isRunning(operation) ? [] : this.#absent(operation);
    // If all ranks have called it, the running collective waits for data to arrive, or for ranks to receive data.
    return absent.length > 0 ? absent : (this.#running?.waitsFor ?? []);
  }

  /** Fails the group if a collective waits for a rank from which nothing more will arrive. */
  checkLost(): void {
    const { whyNoPosts, whyNoData, whyNotTaken, fail } = this.#context;
    const whyNone = (rank: number) => whyNoPosts(rank) ?? whyNoData(rank) ?? whyNotTaken(rank);
    if (this.#others.every((rank) => whyNone(rank) === null)) return;
    for (const { entry } of this.#called) {
      const { operation } = entry;
      const lost = this.#isRunning(operation)
        ? (firstLost(this.#running!.missing, whyNoData) ?? firstLost(this.#running!.unsent, whyNotTaken))
        : firstLost(this.#absent(operation), whyNoPosts);
      if (lost === null) continue;
      fail(peerLost(operation.verb, operation.seq, lost.rank, lost.reason));
      return;
    }
  }

  /** Drops all state after a failure. */
  clear(): void {
    this.#called = [];
    this.#posts.clear();
    this.#running = null;
  }

  #advance(): void {
    const [first] = this.#called;
    if (this.#running !== null || first === undefined || this.#context.isFailing()) return;
    const { operation } = first.entry;
    const posts = this.#postsOf(operation.seq);
    if (posts.size < this.#others.length) {
      this.checkLost();
      return;
    }
    if (operation.verb === 'allToAll' && !this.#agreeInPairs(first, posts)) return;
    this.#posts.delete(operation.seq);
    if (this.#failsDetached(operation)) return;
    const { rank, pending } = this.#context;
    const execution = new Execution(operation, first.plan, rank, posts, this.#context, () => {
      this.#called.shift();
      this.#running = null;
      pending.end(first.entry);
      // Deferred to a microtask, so that a long queue of collectives does not nest calls.
      queueMicrotask(() => this.#advance());
    });
    this.#running = execution;
    execution.start(posts);
    if (this.#running !== execution) return;
    for (const other of this.#others) this.#context.resume(other);
    if (this.#running === execution) this.checkLost();
  }

  /** Fails the group and returns true if the program has transferred a buffer of the operation away. */
  #failsDetached(operation: CollectiveOperation): boolean {
    if (!hasDetached(operation)) return false;
    this.#context.fail(detachedBeforeTurn(operation.verb, operation.seq, this.#context.rank));
    return true;
  }

  #isRunning(operation: CollectiveOperation): boolean {
    return this.#running !== null && this.#called[0]?.entry.operation === operation;
  }

  /** Returns the ranks that have not called a collective. */
  #absent({ seq }: CollectiveOperation): number[] {
    const posts = this.#posts.get(seq);
    return this.#others.filter((other) => posts?.has(other) !== true);
  }

  #agrees({ entry, post }: Called, from: number, theirs: Post): boolean {
    if (theirs.signature === post.signature) return true;
    const { verb, seq } = entry.operation;
    const sides = [
      { rank: from, signature: theirs.signature },
      { rank: this.#context.rank, signature: post.signature },
    ] as const;
    this.#context.fail(mismatch(verb, seq, ...sides));
    return false;
  }

  /** Fails the group if a rank of an allToAll sends a different number of elements than its peer expects. */
  #agreeInPairs({ entry, post }: Called, posts: ReadonlyMap<number, Post>): boolean {
    const { verb, seq, input } = entry.operation as AllToAll;
    const { rank, size } = this.#context;
    const countsOf = (of: number) => (of === rank ? post : posts.get(of)!).counts!;
    for (let to = 0; to < size; to++) {
      for (let from = 0; from < size; from++) {
        const sends = countsOf(from)[0][to]!;
        const expects = countsOf(to)[1][from]!;
        if (sends === expects) continue;
        const one = { rank: from, signature: `${verb} with ${sends} × ${input.dtype} for rank ${to}` };
        const two = { rank: to, signature: `${verb} with ${expects} × ${input.dtype} from rank ${from}` };
        this.#context.fail(mismatch(verb, seq, one, two));
        return false;
      }
    }
    return true;
  }

  #countsOf(operation: AllToAll): [number[], number[]] {
    const { size } = this.#context;
    const all = Array.from({ length: size }, (_, other) => other);
    return [
      all.map((other) => sentTo(other, size, operation)),
      all.map((other) => expectedFrom(other, size, operation)),
    ];
  }

  #postsOf(seq: number): Map<number, Post> {
    const posts = this.#posts.get(seq) ?? new Map<number, Post>();
    this.#posts.set(seq, posts);
    return posts;
  }
}

/** Returns the first of the ranks for which `why` gives a reason. */
function firstLost(ranks: readonly number[], why: (rank: number) => string | null) {
  for (const rank of ranks) {
    const reason = why(rank);
    if (reason !== null) return { rank, reason };
  }
  return null;
}

function textOf(factor: number): string {
  return Object.is(factor, -0) ? '-0' : String(factor);
}

/** Returns the id that identifies a collective in the headers of its data frames. */
export function idOf({ seq }: { readonly seq: number }): number {
  return seq % 2 ** 32;
}
