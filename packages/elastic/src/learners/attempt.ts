// One attempt of a learner to get the state from some members: connects to them, chooses the step before which they
// copy the state, and handles their messages until the learner is a member. The attempt fails if one of them is lost.
import { randomUUID } from 'node:crypto';
import { untilAborted } from '@ringwise/collectives';
import { bytesDamaged, tooSlow } from '../errors.ts';
import type { Trained } from '../job/trained.ts';
import type { JobAccess } from '../membership/join.ts';
import type { Member } from '../membership/protocol/view.ts';
import { Channel, type FromLearner, type FromSource } from './channel.ts';
import { Pool } from './pool.ts';
import { Replica } from './replica.ts';

/** Milliseconds to connect. A member that trains without pauses answers only between two steps. */
const connectMs = 120_000;
/** Milliseconds that the learner waits for the other members once one is connected. */
const graceMs = 5_000;
/** Milliseconds between the request to copy the state and the copy, at first; doubled after each failure. */
const noticeMs = 50;

interface Peer {
  readonly member: Member;
  readonly channel: Channel<FromLearner, FromSource>;
  hasEnded: boolean;
  /** Number of steps that the learner was behind the member, as the member last reported. */
  behind: number;
}

/** Number of message buffers to keep for reuse: two for each member that sends. */
const mostFree = 8;
/** A learner has caught up if it is at most one step, or this many milliseconds, behind. */
const mostBehindMs = 50;
/** Number of times that a member may drop queued messages for the learner before the learner gives up. */
const mostBehind = 2;

export class Attempt {
  readonly #access: JobAccess;
  readonly #trained: Trained;
  #peers: readonly Peer[] = [];
  #replica: Replica | null = null;
  #notice = noticeMs;
  #stepMs = 0;
  #timesBehind = 0;
  #isClosed = false;
  readonly #pool = new Pool(mostFree);
  readonly #ready = deferred();
  readonly #over = deferred();

  constructor(access: JobAccess, trained: Trained) {
    this.#access = access;
    this.#trained = trained;
    this.#over.promise.catch(() => {});
    this.#ready.promise.catch(() => {});
  }

  get replica(): Replica | null {
    return this.#replica;
  }

  /** Number of members that send. */
  get sources(): number {
    return this.#peers.length;
  }

  /**
   * Resolves when the state equals the members' state after their last final step, and continues to apply their steps.
   * Rejects if a member is lost, or when `signal` is aborted. Calls `onConnected` before the members copy the state.
   */
  async run(members: readonly Member[], signal: AbortSignal, onConnected: () => void): Promise<void> {
    const stop = () => this.#fail(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const channels = await this.#connect(members, signal);
      this.#peers = channels.map(([member, channel]) => ({
        ...{ member, channel },
        ...{ hasEnded: false, behind: Number.POSITIVE_INFINITY },
      }));
      if (this.#isClosed) return await this.close();
      onConnected();
      await untilAborted(signal, this.#start());
      await this.#ready.promise;
    } catch (error) {
      await this.close();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Resolves when all members have sent their last step, or one of them is lost. */
  async over(): Promise<void> {
    await this.#over.promise.catch(() => {});
    await this.close();
  }

  /** Ends all connections. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#replica?.stop();
    await Promise.all(this.#peers.map(({ channel }) => channel.close()));
  }

  #fail(error: unknown): void {
    this.#ready.reject(error);
    this.#over.reject(error);
  }

  async #connect(
    members: readonly Member[],
    signal: AbortSignal,
  ): Promise<(readonly [Member, Channel<FromLearner, FromSource>])[]> {
    const { self, chain } = this.#access;
    const late = new AbortController();
    const ended = AbortSignal.any([signal, late.signal]);
    const opened: (readonly [Member, Channel<FromLearner, FromSource>])[] = [];
    let timer: NodeJS.Timeout | undefined;
    const each = members.map(async (member) => {
      const ask = { ask: randomUUID(), learner: self.id, host: self.host };
      await chain.ask(member.id, ask);
      const hosts = [self.host, member.host] as const;
      opened.push([member, await Channel.open(this.#access, ask, 0, hosts, connectMs, ended)]);
      timer ??= setTimeout(() => late.abort(new Error('connected too late')), graceMs);
    });
    const ends = await Promise.allSettled(each);
    clearTimeout(timer);
    if (opened.length > 0 && !signal.aborted) return opened;
    await Promise.all(opened.map(([, channel]) => channel.close()));
    signal.throwIfAborted();
    throw (ends[0] as PromiseRejectedResult).reason;
  }

  async #start(): Promise<void> {
    const hellos = await Promise.all(this.#peers.map(({ channel }) => channel.receive(this.#pool.take)));
    const steps = hellos.map(({ frame }) => (frame.kind === 'hello' ? frame : { step: 0, stepMs: 0 }));
    this.#stepMs = Math.max(...steps.map(({ stepMs }) => stepMs));
    for (const [index] of this.#peers.entries()) {
      this.#read(index).catch((error: unknown) => this.#fail(error));
    }
    await this.#begin(Math.max(...steps.map(({ step }) => step)));
  }

  /** Asks all members to copy the state before the same step, soon after `step`. */
  async #begin(step: number): Promise<void> {
    const at = step + 1 + Math.ceil(this.#notice / Math.max(this.#stepMs, 1));
    const of = this.#peers.length;
    this.#replica?.stop();
    this.#replica = new Replica(this.#trained, of, at, this.#pool);
    for (const peer of this.#peers) peer.behind = Number.POSITIVE_INFINITY;
    for (const [share, { channel }] of this.#peers.entries()) {
      await channel.send({ kind: 'begin', at, share, of });
    }
  }

  /** Handles the messages of one member. The next message is received while one is handled. */
  async #read(index: number): Promise<void> {
    const peer = this.#peers[index]!;
    let before: Promise<void> = Promise.resolve();
    while (!peer.hasEnded) {
      const { frame, bytes, isIntact } = await peer.channel.receive(this.#pool.take);
      await before;
      // Deferred to a later turn of the event loop, so that the next message is received meanwhile.
      before = Promise.resolve().then(async () => {
        if (!isIntact()) throw bytesDamaged(peer.member.id);
        await this.#take(index, frame, bytes);
      });
      before.catch(() => {}); // awaited in the next turn
      if (frame.kind === 'end') await before;
    }
  }

  async #take(index: number, frame: FromSource, bytes: Uint8Array): Promise<void> {
    const replica = this.#replica!;
    if (frame.kind === 'end') {
      this.#peers[index]!.hasEnded = true;
      if (this.#peers.every(({ hasEnded }) => hasEnded)) this.#over.resolve();
      return;
    }
    if (frame.kind === 'hello' || frame.at !== replica.at) return;
    if (frame.kind === 'missed') {
      this.#notice *= 2;
      return await this.#begin(frame.step);
    }
    if (frame.kind === 'behind') {
      if (++this.#timesBehind === mostBehind) throw tooSlow(frame.bytes, frame.step, mostBehind);
      return await this.#begin(frame.step);
    }
    if (frame.kind === 'snapshot') this.#stepMs = frame.stepMs;
    if (frame.kind === 'heard') {
      this.#peers[index]!.behind = frame.behind;
      const behind = Math.max(...this.#peers.map((peer) => peer.behind));
      if (replica.isCompared && (behind <= 1 || behind * this.#stepMs <= mostBehindMs)) this.#ready.resolve();
      return;
    }
    const { step } = replica;
    await replica.take(index, frame, bytes);
    if (replica.step > step) this.#say({ kind: 'taken', at: replica.at, step: replica.step - 1 });
  }

  /** Sends something to all members. If one is lost, the loop that reads its messages notices that. */
  #say(frame: FromLearner): void {
    for (const { channel } of this.#peers) channel.send(frame).catch(() => {});
  }
}

interface Deferred {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

function deferred(): Deferred {
  let [resolve, reject]: [() => void, (error: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<void>((onResolve, onReject) => {
    [resolve, reject] = [onResolve, onReject];
  });
  return { promise, resolve, reject };
}
