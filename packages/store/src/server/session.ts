// One client connection of the server, from acceptance to its end: authentication, detection of the protocol
// version, requests.

import type { Socket } from 'node:net';
import { StoreError, serverBug } from '../errors.ts';
import { admit, busy, denied } from '../wire/authentication.ts';
import { ByteQueue, Parser, type Reading } from '../wire/byte-queue.ts';
import { answer, type Request, readRequest } from '../wire/requests.ts';
import {
  oldRequestKinds,
  type RequestKind,
  requestKinds,
  stopWaiting,
  typeByte,
  validateMagic,
  waitCancelled,
} from '../wire/wire.ts';
import type { PendingConnections, Refusal } from './pending-connections.ts';
import type { ServerState } from './server-state.ts';

/** Serves `socket` until it closes. An error of a client ends only its own connection. */
export function serveSession(socket: Socket, server: ServerState): void {
  new Session(socket, server).start();
}

class Session {
  readonly #socket: Socket;
  readonly #server: ServerState;
  readonly #queue = new ByteQueue();
  readonly #withdrawals = new Set<() => void>(); // of this client's waits and barriers
  #hasSpoken = false;

  constructor(socket: Socket, server: ServerState) {
    this.#socket = socket;
    this.#server = server;
  }

  start(): void {
    const parser = new Parser(this.#conversation());
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => {
      this.#hasSpoken = true;
      this.#queue.push(chunk);
      this.#socket.cork();
      try {
        if (parser.advance(this.#queue)) this.#turnAway(denied);
      } catch (error) {
        this.#socket.destroy();
        if (!StoreError.isInstance(error)) process.emitWarning(serverBug(error));
      }
      this.#socket.uncork();
      // Stops reading from a client that sends requests but does not read the replies.
      if (this.#socket.writableNeedDrain) this.#socket.pause();
    });
    this.#socket.on('drain', () => this.#socket.resume());
    this.#socket.on('error', () => this.#socket.destroy());
    this.#socket.on('close', () => this.#withdrawAll());
    this.#hold(this.#server.pending, this.#pending);
  }

  /** Ends this connection if it is not admitted in time or loses its slot. */
  readonly #pending: Refusal = {
    onTimeout: () => {
      if (!this.#isOldWatch()) this.#socket.destroy();
    },
    onOverflow: () => {
      // A client without a secret may be torch's, which retries when the connection ends but does not know
      // the `busy` answer.
      if (this.#server.secret === undefined) this.#socket.destroy();
      else this.#turnAway(busy);
    },
  };

  /** Adds the connection to `connections` until it ends or is removed there. */
  #hold(connections: PendingConnections, refusal: Refusal): void {
    connections.add(refusal);
    this.#socket.once('close', () => connections.remove(refusal));
  }

  /** Runs the session's protocol. Returns only if the client must be rejected. */
  *#conversation(): Reading<void> {
    const { secret, pending } = this.#server;
    if (secret !== undefined) {
      const admission = yield* admit(secret, (bytes) => {
        pending.progress(this.#pending);
        this.#socket.write(bytes);
      });
      if (admission === 'plain')
        this.#server.onPlainClient?.(this.#socket.remoteAddress ?? 'an unknown address');
      if (admission !== 'admitted') return;
      pending.remove(this.#pending);
    }
    const kinds = yield* this.#numbering();
    // A valid validate request admits the connection. Older clients send none, so their first request must be whole.
    if (kinds === requestKinds) pending.remove(this.#pending);
    for (;;) {
      const request = yield* readRequest(kinds);
      pending.remove(this.#pending);
      this.#handle(request);
    }
  }

  /**
   * Detects the numbering of requests: clients since torch 2.1 begin with validate; older ones number requests
   * differently. Puts the bytes of an older client back, because they belong to its first request.
   */
  *#numbering(): Reading<readonly RequestKind[]> {
    const first = Buffer.from(yield 1);
    if (!first.equals(typeByte('validate'))) {
      this.#queue.unshift(first);
      return this.#oldNumbering();
    }
    const magic = Buffer.from(yield validateMagic.length);
    if (magic.equals(validateMagic)) return requestKinds;
    this.#queue.unshift(Buffer.concat([first, magic]));
    return this.#oldNumbering();
  }

  #oldNumbering(): readonly RequestKind[] {
    this.#server.oldClients++;
    this.#socket.once('close', () => this.#server.oldClients--);
    return oldRequestKinds;
  }

  /**
   * Returns whether this may be the silent watch connection of a client of torch 1.13 or 2.0, and counts it. Each such
   * client opens one, so at most one is kept for each.
   */
  #isOldWatch(): boolean {
    if (this.#hasSpoken || this.#server.oldWatches >= this.#server.oldClients) return false;
    this.#server.oldWatches++;
    this.#socket.once('close', () => this.#server.oldWatches--);
    return true;
  }

  #handle(request: Request): void {
    switch (request.kind) {
      case 'wait':
        this.#wait((done) => this.#server.space.watch(request.keys, done));
        return;
      case 'barrier':
        this.#wait((done) => this.#server.space.barrier(request.key, request.world, done));
        return;
      case 'cancelWait':
        this.#withdrawAll();
        this.#socket.write(waitCancelled);
        return;
      default:
        for (const piece of answer(this.#server.space, request)) this.#socket.write(piece);
    }
  }

  /** Starts a wait and replies when it is over. */
  #wait(register: (done: () => void) => () => void): void {
    let isDone = false;
    let withdraw: (() => void) | undefined; // still undefined if register() calls back at once
    withdraw = register(() => {
      isDone = true;
      if (withdraw) this.#withdrawals.delete(withdraw);
      this.#socket.write(stopWaiting);
    });
    if (!isDone) this.#withdrawals.add(withdraw);
  }

  #withdrawAll(): void {
    for (const withdraw of this.#withdrawals) withdraw();
    this.#withdrawals.clear();
  }

  /**
   * Rejects the client with `answer`. Reads and drops its input meanwhile, because closing with unread input would
   * reset the connection and lose the answer.
   */
  #turnAway(answer: Buffer): void {
    this.#server.pending.remove(this.#pending);
    const destroy = () => this.#socket.destroy();
    this.#hold(this.#server.leaving, { onTimeout: destroy, onOverflow: destroy });
    this.#socket.removeAllListeners('data');
    this.#socket.resume();
    this.#socket.end(answer);
  }
}
