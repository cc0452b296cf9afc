// One rank's end of a group on TCP: its connections, what runs on them, and how it fails and closes. Everything
// happens on the JavaScript thread.
import type { Operation, Settle } from '../../backend.ts';
import {
  aborted,
  type CollectiveError,
  type Failure,
  peerLost,
  type Site,
  systemFailure,
  timedOut,
} from '../../errors.ts';
import { Collectives, idOf } from './collectives.ts';
import type { Connection } from './connect.ts';
import { ControlLink } from './control-link.ts';
import { DataLink, Stream } from './data-link.ts';
import { Diagnosis } from './diagnosis.ts';
import type { Frame } from './frames.ts';
import { later } from './later.ts';
import { Messages } from './messages.ts';
import { Pending } from './pending.ts';
import { RootCause } from './root-cause.ts';

interface Peer {
  readonly rank: number;
  readonly control: ControlLink;
  readonly data: DataLink;
  /** Why nothing more will arrive from this peer; null while it takes part. */
  gone: string | null;
  /** Whether it has closed the group. */
  hasLeft: boolean;
  /** Why its data connection counts as lost although the peer has not said goodbye. */
  dataLost: string | null;
  /** Whether the peer knows that this rank has closed the group, and needs nothing more from it. */
  hasHeardGoodbye: boolean;
}

/**
 * Milliseconds from the end of a data connection until it counts as a loss: a rank that fails ends it, and the reason
 * arrives over the control connection.
 */
const dataLostMs = 100;
/** Milliseconds that close() waits for the peers to acknowledge it. They may be busy. */
const goodbyeMs = 2_000;
/** Maximum milliseconds that close() then waits until all data of this rank has left its process. */
const sentMs = 30_000;

export class TcpGroup {
  readonly #site: Site;
  readonly #peers = new Map<number, Peer>();
  readonly #pending: Pending;
  readonly #collectives: Collectives;
  readonly #messages: Messages;
  readonly #rootCause: RootCause;
  /** The error of this rank's abort(), which this rank reports unchanged. */
  #own: CollectiveError | null = null;
  /** Finds the ranks that delay the first collective that has expired. */
  #diagnosis: Diagnosis | null = null;
  /** Collectives that have expired while the diagnosis runs. */
  #expired: Operation[] = [];
  #closing: Promise<void> | null = null;
  #isLeaving = false;
  #onHeard: () => void = () => {};

  constructor(site: Site, connections: readonly Connection[]) {
    this.#site = site;
    const { rank, size } = site;
    this.#pending = new Pending(site, (operation) => this.#expire(operation));
    this.#rootCause = new RootCause({
      rank,
      left: () => [...this.#peers.values()].flatMap((peer) => (peer.gone === null ? [peer.rank] : [])),
      report: (to, failure) => this.#tell(to, { kind: 'report', failure }),
      tell: (to, failure) => this.#tell(to, { kind: 'cause', failure }),
      onCause: (cause) => this.#endAll(cause),
    });
    const shared = {
      rank,
      size,
      pending: this.#pending,
      fail: (failure: Failure) => this.#rootCause.notice(failure),
      isFailing: () => this.#rootCause.isFailing,
      whyNoPosts: (from: number) => this.#peers.get(from)!.gone,
      whyNoData: (from: number) => {
        const { gone, data, dataLost } = this.#peers.get(from)!;
        return data.isEnded ? (gone ?? dataLost) : null;
      },
      whyNotTaken: (to: number) => {
        const { gone, data, dataLost } = this.#peers.get(to)!;
        return data.isBroken ? (gone ?? dataLost) : null;
      },
    };
    this.#collectives = new Collectives({
      ...shared,
      post: (to, post) => this.#tell(to, post),
      send: (to, stream, seq, bytes, onSent) =>
        this.#peers.get(to)!.data.send(stream, idOf({ seq }), bytes, stream === Stream.results, onSent),
      resume: (from) => this.#peers.get(from)!.data.resume(),
    });
    this.#messages = new Messages({
      ...shared,
      tell: (to, frame) => this.#tell(to, frame),
      send: (to, id, bytes, onSent) =>
        this.#peers.get(to)!.data.send(Stream.message, id, bytes, false, onSent),
    });
    for (const connection of connections) this.#peers.set(connection.rank, this.#peerOf(connection));
  }

  /** Starts an operation; `settle` is called when it has ended, never before this returns. */
  start(operation: Operation, settle: Settle): void {
    if (this.#rootCause.isFailing) {
      this.#pending.add(operation, settle);
      const cause = this.#rootCause.known;
      if (cause !== null) this.#pending.endAll(cause, this.#own);
    } else if (operation.verb === 'send') this.#messages.send(operation, settle);
    else if (operation.verb === 'recv') this.#messages.recv(operation, settle);
    else this.#collectives.start(operation, settle);
  }

  /** The root cause, or the loss of ranks; null while there is neither. */
  get failure(): Failure | null {
    return this.#rootCause.known ?? this.losses;
  }

  /** The loss of all ranks that are lost so far, also after another failure; null if none is. */
  get losses(): Failure | null {
    const losses = [...this.#peers.values()].flatMap(({ rank, gone, hasLeft }) =>
      gone === null || hasLeft ? [] : [peerLost('init', null, rank, gone)],
    );
    if (losses.length < 2) return losses[0] ?? null;
    const peers = losses.flatMap((loss) => loss.peers);
    return { ...losses[0]!, peers, what: losses.map(({ what }) => what).join(', ') };
  }

  /** Fails everything pending and later on all ranks. */
  abort(error: CollectiveError): void {
    if (this.#rootCause.isFailing || this.#isLeaving) return;
    this.#own = error;
    const { code, verb, peers, what, next } = error;
    // The other ranks cannot report an error about the arguments or the form of this rank's call.
    const isOwn = code === 'ERR_COLL_INVALID' || code === 'ERR_COLL_UNSUPPORTED' || code === 'ERR_COLL_INIT';
    const shared = { code, verb, seq: null, peers, what, ...(next !== undefined && { next }) };
    this.#rootCause.notice(isOwn ? { ...aborted(this.#site.rank, what), what } : shared);
  }

  /** Resolves when everything pending has ended and this rank has left. */
  close(): Promise<void> {
    this.#closing ??= this.#leave();
    return this.#closing;
  }

  async #leave(): Promise<void> {
    await this.#pending.idle();
    // A rank that leaves before the root cause is decided would be taken for the root cause.
    await this.#rootCause.decided();
    this.#isLeaving = true;
    const peers = [...this.#peers.values()];
    const left = peers.map(({ control, data }) => {
      control.send({ kind: 'goodbye' });
      return Promise.all([control.end(), data.end()]);
    });
    // Destroying a connection early loses data in transit, so wait until the peers have read everything.
    const heard = new Promise<void>((resolve) => {
      this.#onHeard = () => {
        if (peers.every(({ gone, hasHeardGoodbye }) => gone !== null || hasHeardGoodbye)) resolve();
      };
      this.#onHeard();
    });
    await within(goodbyeMs, heard);
    // The peers may be busy. The program may end this process when close() resolves, so wait until all data has left
    // it.
    await within(sentMs, Promise.all(left));
    for (const { gone, hasHeardGoodbye, control, data } of peers) {
      if (gone === null && !hasHeardGoodbye) continue; // it reads on, until it ends the connections itself
      control.destroy();
      data.destroy();
    }
  }

  #peerOf({ rank, control, data }: Connection): Peer {
    // Only operations keep the process alive, by their deadlines.
    control.unref();
    data.unref();
    const peer: Peer = {
      rank,
      gone: null,
      hasLeft: false,
      dataLost: null,
      hasHeardGoodbye: false,
      control: new ControlLink(control, {
        onFrame: (frame) => this.#guarded(undefined, () => this.#hear(peer, frame)),
        onEnd: (reason) => this.#gone(peer, reason),
      }),
      data: new DataLink(data, {
        onData: (stream, id, bytes) => {
          if (this.#rootCause.isFailing) return bytes.length;
          return this.#guarded(bytes.length, () =>
            stream === Stream.message
              ? this.#messages.accept(rank, id, bytes)
              : this.#collectives.accept(rank, stream, id, bytes),
          );
        },
        onEnd: (isGarbage) => {
          this.#answerGoodbye(peer);
          const told = 'it sent data that this rank does not expect';
          this.#dataEnded(peer, isGarbage ? told : 'its data connection closed');
        },
        onBroken: () => this.#dataEnded(peer, 'its data connection broke'),
      }),
    };
    return peer;
  }

  /** Runs `take`. If it throws, for example because the caller has detached a buffer, this rank fails the group. */
  #guarded<T>(otherwise: T, take: () => T): T {
    try {
      return take();
    } catch (error) {
      this.#rootCause.notice(systemFailure('receive', null, (error as Error).message));
      return otherwise;
    }
  }

  #hear(peer: Peer, frame: Frame): void {
    switch (frame.kind) {
      case 'report':
        this.#rootCause.answer(peer.rank, frame.failure);
        return;
      case 'cause':
        this.#rootCause.heard(frame.failure);
        return;
      case 'question':
        this.#tell(peer.rank, { kind: 'waiting', waitsFor: this.#collectives.waitsFor });
        return;
      case 'waiting':
        this.#diagnosis?.heard(peer.rank, frame.waitsFor);
        return;
      case 'goodbye':
        peer.hasLeft = true;
        this.#gone(peer, 'it has closed the group');
        return;
      case 'goodbye heard':
        peer.hasHeardGoodbye = true;
        this.#onHeard();
        return;
    }
    // After this rank has noticed a failure, no further operation may begin.
    if (this.#rootCause.isFailing) return;
    if (frame.kind === 'post') this.#collectives.posted(peer.rank, frame);
    else if (frame.kind === 'offer') this.#messages.offered(peer.rank, frame);
    else this.#messages.taken(peer.rank, frame.id);
  }

  #gone(peer: Peer, reason: string): void {
    if (peer.gone !== null) return;
    peer.gone = reason;
    this.#answerGoodbye(peer);
    this.#rootCause.gone(peer.rank);
    this.#checkLost();
    this.#onHeard();
  }

  #dataEnded(peer: Peer, why: string): void {
    this.#checkLost();
    const lose = () => {
      peer.dataLost ??= why;
      this.#checkLost();
    };
    later(dataLostMs, lose, false);
  }

  /** Tells a rank that has left that this rank has read all of its data. */
  #answerGoodbye({ gone, data, control }: Peer): void {
    if (gone !== null && data.isEnded && !this.#isLeaving) control.send({ kind: 'goodbye heard' });
  }

  #checkLost(): void {
    if (this.#rootCause.isFailing) return;
    this.#collectives.checkLost();
    if (!this.#rootCause.isFailing) this.#messages.checkLost();
  }

  #tell(to: number, frame: Frame): void {
    const { gone, control } = this.#peers.get(to)!;
    if (gone === null && !this.#isLeaving) control.send(frame);
  }

  #expire(operation: Operation): void {
    if (this.#rootCause.isFailing) return;
    const { verb, seq, timeoutMs } = operation;
    const fail = (missing: readonly number[]) => {
      this.#diagnosis = null;
      if (this.#pending.has(operation)) this.#rootCause.notice(timedOut(verb, seq, missing, timeoutMs));
      for (const other of this.#expired.splice(0)) if (this.#pending.has(other)) this.#expire(other);
    };
    if (verb === 'send' || verb === 'recv') {
      fail(this.#messages.missing(operation));
      return;
    }
    const asking = {
      rank: this.#site.rank,
      ask: (rank: number) => this.#tell(rank, { kind: 'question' }),
    };
    if (this.#diagnosis !== null) {
      this.#expired.push(operation);
      return;
    }
    // The diagnosis may end inside its constructor, and is not kept then.
    const diagnosis = new Diagnosis(asking, this.#collectives.missing(operation), fail);
    if (!diagnosis.isOver) this.#diagnosis = diagnosis;
  }

  #endAll(cause: Failure): void {
    this.#collectives.clear();
    this.#messages.clear();
    // After this the caller may reuse the memory of the operations, so stop sending from it first.
    for (const { data } of this.#peers.values()) data.destroy();
    this.#pending.endAll(cause, this.#own);
  }
}

/** Resolves when `promise` does, or after `ms` milliseconds. */
async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([promise, over]);
  clearTimeout(timer);
}
