// Sends and receives of one rank. The sender offers a message to the receiver, with its bytes if it is short; the
// receiver accepts the first offer that matches a recv. A long message is sent only after that, so that it never blocks
// a connection while it waits for a recv. A send ends when its message was accepted.
import type { Operation, Recv, Send, Settle } from '../../backend.ts';
import { type Failure, mismatch, peerLost } from '../../errors.ts';
import { shapeOf, signatureOf } from '../../group/signature.ts';
import { Mailbox } from '../mailbox.ts';
import { isInline } from './execution.ts';
import type { Frame, Offer } from './frames.ts';
import type { Entry, Pending } from './pending.ts';
import { bytesOf } from './plan.ts';

export interface MessagesContext {
  readonly rank: number;
  readonly size: number;
  readonly pending: Pending;
  readonly tell: (to: number, frame: Frame) => void;
  readonly send: (to: number, id: number, bytes: Uint8Array, onSent: () => void) => void;
  readonly fail: (failure: Failure) => void;
  /** `whyNoPosts` and `whyNoData` return why no more offers, or data, will arrive from a rank, or null. */
  readonly whyNoPosts: (rank: number) => string | null;
  readonly whyNoData: (rank: number) => string | null;
  /** Returns why a rank will not receive data that is still in this process, or null if it may. */
  readonly whyNotTaken: (rank: number) => string | null;
}

interface Offered {
  /** The sender. */
  readonly rank: number;
  readonly operation: { readonly peer: number; readonly tag: number };
  readonly offer: Offer;
}
interface Wanted {
  readonly rank: number;
  readonly operation: Recv;
  readonly entry: Entry<Recv>;
}
interface Coming {
  readonly wanted: Wanted;
  readonly from: number;
  got: number;
}

const noBytes = new Uint8Array(0);
const keyOf = (rank: number, id: number) => `${rank}/${id}`;

export class Messages {
  readonly #context: MessagesContext;
  readonly #mailbox = new Mailbox<Offered, Wanted>();
  /** Receives that have not been matched with a message. */
  readonly #waiting = new Set<Wanted>();
  /** Sends that no recv has accepted, and long messages that are being received, by rank and number. */
  readonly #offered = new Map<string, Entry<Send>>();
  readonly #coming = new Map<string, Coming>();
  /** Long messages that have been accepted and are being sent. */
  readonly #leaving = new Set<Entry<Send>>();
  readonly #sent: number[];

  constructor(context: MessagesContext) {
    this.#context = context;
    this.#sent = new Array<number>(context.size).fill(0);
  }

  send(operation: Send, settle: Settle): void {
    const { pending, tell } = this.#context;
    const { peer, tag, buffer } = operation;
    const id = this.#sent[peer]!++ % 2 ** 32;
    this.#offered.set(keyOf(peer, id), pending.add(operation, settle));
    const bytes = bytesOf(buffer);
    const isShort = isInline(bytes);
    const [shape, signature] = [shapeOf(buffer), signatureOf(operation)];
    const inline = { isInline: isShort, bytes: isShort ? bytes : noBytes };
    tell(peer, { kind: 'offer', id, tag, shape, signature, ...inline });
    this.checkLost();
  }

  recv(operation: Recv, settle: Settle): void {
    const { rank, pending } = this.#context;
    const wanted = { rank, operation, entry: pending.add(operation, settle) };
    this.#waiting.add(wanted);
    this.#mailbox.recv(wanted);
    this.#match();
    this.checkLost();
  }

  /** Handles the offer of a message by a rank. */
  offered(from: number, offer: Offer): void {
    const operation = { peer: this.#context.rank, tag: offer.tag };
    this.#mailbox.send({ rank: from, operation, offer });
    this.#match();
  }

  /** Handles the acceptance of a message that this rank has offered. */
  taken(by: number, id: number): void {
    const key = keyOf(by, id);
    const entry = this.#offered.get(key);
    if (entry === undefined) return;
    this.#offered.delete(key);
    const bytes = bytesOf(entry.operation.buffer);
    const { pending, send } = this.#context;
    if (isInline(bytes)) {
      pending.end(entry);
      return;
    }
    this.#leaving.add(entry);
    send(by, id, bytes, () => {
      this.#leaving.delete(entry);
      pending.end(entry);
    });
    this.checkLost();
  }

  /** Receives bytes of a long message; see DataEvents.onData. */
  accept(from: number, id: number, bytes: Uint8Array): number {
    const key = keyOf(from, id);
    const coming = this.#coming.get(key);
    if (coming === undefined) return -1;
    const { entry, operation } = coming.wanted;
    const target = bytesOf(operation.buffer);
    if (coming.got + bytes.length > target.length) return -1;
    target.set(bytes, coming.got);
    coming.got += bytes.length;
    if (coming.got === target.length) {
      this.#coming.delete(key);
      this.#context.pending.end(entry, undefined, from);
    }
    return bytes.length;
  }

  /** Returns the ranks that a message waits for. */
  missing(operation: Operation): number[] {
    const { rank, size } = this.#context;
    const { peer } = operation as Send | Recv;
    if (peer >= 0) return [peer];
    for (const { wanted, from } of this.#coming.values()) if (wanted.operation === operation) return [from];
    return Array.from({ length: size }, (_, other) => other).filter((other) => other !== rank);
  }

  /** Fails the group if a message waits for a rank from which nothing more will arrive. */
  checkLost(): void {
    const { whyNoPosts, whyNoData, whyNotTaken } = this.#context;
    for (const { from, wanted } of this.#coming.values())
      if (this.#lost(wanted.operation, from, whyNoData(from))) return;
    for (const { operation } of this.#offered.values())
      if (this.#lost(operation, operation.peer, whyNoPosts(operation.peer))) return;
    for (const { operation } of this.#leaving)
      if (this.#lost(operation, operation.peer, whyNotTaken(operation.peer))) return;
    for (const { operation } of this.#waiting) {
      const from = this.missing(operation);
      // A receive from any rank is stuck only if all other ranks are gone.
      const reasons = from.map(whyNoPosts);
      if (reasons.includes(null)) continue;
      if (this.#lost(operation, from[0]!, reasons[0]!)) return;
    }
  }

  /** Drops all state after a failure. */
  clear(): void {
    this.#mailbox.clear();
    this.#waiting.clear();
    this.#offered.clear();
    this.#coming.clear();
    this.#leaving.clear();
  }

  #lost({ verb, seq }: Operation, rank: number, reason: string | null): boolean {
    if (reason !== null) this.#context.fail(peerLost(verb, seq, rank, reason));
    return reason !== null;
  }

  #match(): void {
    for (const [{ rank: from, offer }, wanted] of this.#mailbox.pairs()) {
      const { operation, entry, rank } = wanted;
      this.#waiting.delete(wanted);
      const { buffer, verb, seq } = operation;
      if (shapeOf(buffer) !== offer.shape) {
        const sides = [
          { rank, signature: signatureOf(operation) },
          { rank: from, signature: offer.signature },
        ] as const;
        this.#context.fail(mismatch(verb, seq, ...sides));
        return;
      }
      if (offer.isInline) {
        bytesOf(buffer).set(offer.bytes);
        this.#context.pending.end(entry, undefined, from);
      } else this.#coming.set(keyOf(from, offer.id), { wanted, from, got: 0 });
      this.#context.tell(from, { kind: 'take', id: offer.id });
    }
  }
}
