// Executes a collective that all ranks have agreed on: moves its data and reduces it.
import type { CollectiveOperation } from '../../backend.ts';
import { Combiner, type Reduction } from './combiner.ts';
import { Stream } from './data-link.ts';
import type { Post } from './frames.ts';
import type { Plan } from './plan.ts';

/** The functions of the group that the execution calls. */
export interface Carrier {
  /** Sends bytes to a rank without copying them; calls `onSent` when the caller may reuse the memory. */
  readonly send: (to: number, stream: number, seq: number, bytes: Uint8Array, onSent: () => void) => void;
  /** Offers data of a rank again that this rank could not accept. */
  readonly resume: (from: number) => void;
}

export class Execution {
  readonly #rank: number;
  readonly #seq: number;
  readonly #plan: Plan;
  readonly #combiner: Combiner | null;
  readonly #carrier: Carrier;
  readonly #onDone: () => void;
  /** Bytes that have been written to `receives`, by rank. */
  readonly #got: number[];
  /** Number of buffers that have not been sent completely, by rank. */
  readonly #unsent = new Map<number, number>();
  #isStarted = false;

  /** `posts` has the other ranks' posts. Calls `onDone` once, from start() at the earliest. */
  constructor(
    operation: CollectiveOperation,
    plan: Plan,
    rank: number,
    posts: ReadonlyMap<number, Post>,
    carrier: Carrier,
    onDone: () => void,
  ) {
    this.#rank = rank;
    this.#seq = operation.seq;
    this.#plan = plan;
    this.#carrier = carrier;
    this.#onDone = onDone;
    this.#got = plan.receives.map(() => 0);
    const factor = (from: number) =>
      from === rank ? (operation as { factor: number }).factor : Number(posts.get(from)!.factor);
    const reduction: Reduction = 'op' in operation ? { op: operation.op, factor } : null;
    this.#combiner = plan.combination && new Combiner(plan.combination, dtypeOf(operation), rank, reduction);
  }

  /** Receives the data that arrived with the posts, and sends the data that did not fit into this rank's own posts. */
  start(posts: ReadonlyMap<number, Post>): void {
    const { sends, receives } = this.#plan;
    if (this.#combiner === null) {
      const here = receives[this.#rank]!;
      if (here.length > 0) here.set(sends[this.#rank]!);
    }
    for (const [to, bytes] of sends.entries()) {
      if (to !== this.#rank && bytes.length > 0 && !isInline(bytes)) this.#send(to, Stream.first, bytes);
    }
    for (const [from, { bytes }] of posts) if (bytes.length > 0) this.accept(from, Stream.first, bytes);
    this.#isStarted = true;
    this.#progress();
  }

  /** Receives data of a rank; see DataEvents.onData. */
  accept(from: number, stream: number, bytes: Uint8Array): number {
    if (stream === Stream.first && this.#combiner !== null) {
      const taken = this.#combiner.accept(from, bytes);
      if (taken > 0) this.#progress();
      return taken;
    }
    const target = this.#plan.receives[from]!;
    const got = this.#got[from]!;
    const isExpected = (stream === Stream.first) === (this.#combiner === null);
    if (!isExpected || got + bytes.length > target.length) return -1;
    target.set(bytes, got);
    this.#got[from] = got + bytes.length;
    this.#progress();
    return bytes.length;
  }

  /** Ranks whose data has not arrived completely. */
  get missing(): number[] {
    const { receives } = this.#plan;
    const moving = receives.flatMap(({ length }, from) =>
      from !== this.#rank && this.#got[from]! < length ? [from] : [],
    );
    return [...new Set([...moving, ...(this.#combiner?.missing ?? [])])].sort((a, b) => a - b);
  }

  /** Ranks that have not received all data of this rank. */
  get unsent(): number[] {
    return [...this.#unsent.keys()].sort((a, b) => a - b);
  }

  /** The ranks of `missing` and `unsent`. */
  get waitsFor(): number[] {
    return [...new Set([...this.missing, ...this.unsent])].sort((a, b) => a - b);
  }

  #progress(): void {
    if (!this.#isStarted) return;
    const { combination } = this.#plan;
    if (this.#combiner !== null && !this.#combiner.isDone) {
      let isFreed = false;
      for (const result of this.#combiner.combine()) {
        for (const to of combination!.resultTo) this.#send(to, Stream.results, result);
        isFreed = true;
      }
      if (isFreed) for (const from of combination!.terms) if (from !== this.#rank) this.#carrier.resume(from);
    }
    this.#checkDone();
  }

  #send(to: number, stream: number, bytes: Uint8Array): void {
    this.#unsent.set(to, (this.#unsent.get(to) ?? 0) + 1);
    this.#carrier.send(to, stream, this.#seq, bytes, () => {
      const left = this.#unsent.get(to)! - 1;
      if (left > 0) this.#unsent.set(to, left);
      else this.#unsent.delete(to);
      this.#checkDone();
    });
  }

  #checkDone(): void {
    if (!this.#isStarted || this.#unsent.size > 0 || this.#combiner?.isDone === false) return;
    const { receives } = this.#plan;
    for (let from = 0; from < receives.length; from++) {
      if (from !== this.#rank && this.#got[from]! < receives[from]!.length) return;
    }
    this.#isStarted = false;
    this.#onDone();
  }
}

/** Largest data in bytes that a post or an offer carries. */
const inlineBytes = 16 * 1024;

export function isInline(bytes: Uint8Array): boolean {
  return bytes.length <= inlineBytes;
}

function dtypeOf(operation: CollectiveOperation) {
  if ('buffer' in operation) return operation.buffer.dtype;
  return 'output' in operation && operation.output !== null ? operation.output.dtype : 'uint8';
}
