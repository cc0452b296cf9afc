// Messages between a learner and one of the members that send it the state, over a group of these two. A message is a
// small object, optionally followed by bytes. The hash of the bytes also covers the step and the index of the part, so
// that a receiver detects a part of another step, or another part.
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Group, initMembers, memberKeys, untilAborted } from '@ringwise/collectives';
import { PrefixStore, type Store } from '@ringwise/store';
import { endable } from '../membership/connect.ts';
import type { JobAccess } from '../membership/join.ts';
import { pairPrefix } from '../membership/keys.ts';

/**
 * A message of a member to a learner. `at` is the step of the last 'begin', before which the member copies the state.
 */
export type FromSource =
  /** The first message. `step` is the number of final steps, `stepMs` the approximate duration of a step. */
  | { readonly kind: 'hello'; readonly step: number; readonly stepMs: number }
  /** The member was past step `at` when it was asked to copy the state. */
  | { readonly kind: 'missed'; readonly at: number; readonly step: number }
  /** The state has been copied; chunks follow. `header` describes it. */
  | { readonly kind: 'snapshot'; readonly at: number; readonly header: string; readonly stepMs: number }
  /** Chunk number `index` of this member's chunks. */
  | { readonly kind: 'chunk'; readonly at: number; readonly index: number }
  | StepFrame
  /** When the learner said that it had taken step `taken`, this member had finished `behind` later ones. */
  | { readonly kind: 'heard'; readonly at: number; readonly taken: number; readonly behind: number }
  /** The learner was too slow: this member has dropped the messages queued for it. */
  | { readonly kind: 'behind'; readonly at: number; readonly step: number; readonly bytes: number }
  /** The learner is in the view that begins after `step` steps. This is the last message. */
  | { readonly kind: 'end'; readonly step: number };

/** A final step. Its bytes are the gradients of this member's share of the parameters, as the optimizer took them. */
export interface StepFrame {
  readonly kind: 'step';
  readonly at: number;
  readonly step: number;
  /** Whether the optimizer took the step; a GradScaler skips some. */
  readonly isTaken: boolean;
  /** Whether each parameter of the share had a gradient. */
  readonly hasGrad: readonly boolean[];
  /** Values of the optimizer that are not arrays, before the step; sent only by the member with the first share. */
  readonly optimizer: string | null;
  /** Checksums of the arrays of this member's share of the state, before the step; null for most steps. */
  readonly sums: readonly number[] | null;
}

/** A message of a learner to a member. */
export type FromLearner =
  | Begin
  /** The learner has applied step `step` with the gradients of all members. */
  | { readonly kind: 'taken'; readonly at: number; readonly step: number };

/** Copy the state before step `at`, and send share number `share` of `of`. */
export interface Begin {
  readonly kind: 'begin';
  readonly at: number;
  readonly share: number;
  readonly of: number;
}

const none = new Uint8Array(0);

/** A message without its bytes, but with their number and hash. */
interface Sealed<F> {
  readonly frame: F;
  readonly bytes: number;
  readonly hash: string | null;
}

export interface Received<F> {
  readonly frame: F;
  readonly bytes: Uint8Array;
  readonly isIntact: () => boolean;
}

/** The request of a learner to a member, in the store. */
export interface Ask {
  /** Unique name of the group of the learner and the member. */
  readonly ask: string;
  readonly learner: string;
  readonly host: string;
}

/** A step of the training, which may take any time, can lie between two messages. A lost peer is noticed at once. */
const messageTimeoutMs = 3_600_000;

export class Channel<Out extends object, In extends object> {
  readonly #group: Group;
  readonly #peer: number;
  /** The store with the keys of the learner and the member. */
  readonly #store: Store;
  #isClosed = false;

  private constructor(group: Group, store: Store) {
    this.#group = group;
    this.#peer = 1 - group.rank;
    this.#store = store;
  }

  /** Connects the learner, which is rank 0, with a member. Rejects after `connectMs` milliseconds, or at `signal`. */
  static async open<Out extends object, In extends object>(
    { store, masterHost, backend }: JobAccess,
    { ask }: Ask,
    rank: 0 | 1,
    hosts: readonly [string, string],
    connectMs: number,
    signal: AbortSignal,
  ): Promise<Channel<Out, In>> {
    signal.throwIfAborted();
    // The connected group continues to use the store, so the store rejects calls only if `signal` comes before that.
    const refusal = new AbortController();
    const refuse = () => refusal.abort(signal.reason);
    signal.addEventListener('abort', refuse, { once: true });
    const keys = new PrefixStore(pairPrefix(ask), store());
    const group = initMembers({
      store: endable(keys, refusal.signal),
      ...{ rank, hosts, name: `learner ${ask}`, connectMs, masterHost, signal: refusal.signal },
      timeoutMs: messageTimeoutMs,
      ...(backend !== undefined && { backend }),
    });
    group.then(
      (connected) => {
        signal.removeEventListener('abort', refuse);
        if (refusal.signal.aborted) connected.close().catch(() => {});
      },
      () => signal.removeEventListener('abort', refuse),
    );
    return new Channel<Out, In>(await untilAborted(refusal.signal, group), keys);
  }

  /** Sends a message. Resolves when the caller may change the bytes; the peer may receive them later. */
  async send(frame: Out, bytes: Uint8Array = none): Promise<void> {
    const hash = bytes.length === 0 ? null : hashOf(frame, bytes);
    const sealed: Sealed<Out> = { frame, bytes: bytes.length, hash };
    const works: PromiseLike<unknown>[] = [this.#group.sendObject(sealed, this.#peer)];
    if (hash !== null) works.push(this.#group.send(bytes, this.#peer));
    await Promise.all(works);
  }

  /**
   * Resolves with the next message; its bytes are in memory from `allocate`. `isIntact` tells whether they match their
   * hash.
   */
  async receive(allocate: (bytes: number) => Uint8Array): Promise<Received<In>> {
    const { value } = await this.#group.recvObject<Sealed<In>>(this.#peer);
    const { frame, hash } = value;
    if (hash === null) return { frame, bytes: none, isIntact: () => true };
    const bytes = allocate(value.bytes);
    await this.#group.recv(bytes, this.#peer);
    return { frame, bytes, isIntact: () => hashOf(frame, bytes) === hash };
  }

  /** Ends the connection; pending calls of both sides reject. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#group.abort('the learner needs no more, or the member has no more');
    await this.#group.close().catch(() => {});
    // Not awaited, because no step depends on it.
    if (this.#group.rank === 0) Promise.all(memberKeys.map((key) => this.#store.delete(key))).catch(() => {});
  }
}

/**
 * Returns the SHA-256 of a part of the state, or the CRC-32 of gradients. Members spend the time for gradients in every
 * step, and a CRC-32 takes a quarter of it; the states after these steps are compared anyway.
 */
function hashOf(frame: object, bytes: Uint8Array): string {
  const { kind, at, step, index } = frame as Partial<Record<string, unknown>>;
  const what = JSON.stringify([kind, at, step, index]);
  if (kind === 'step') return crc32(what, crc32(bytes)).toString(16);
  return createHash('sha256').update(bytes).update(what).digest('hex');
}
