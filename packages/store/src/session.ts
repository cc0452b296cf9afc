// One client connection of the server, from its first byte to its end: handshake, choice of numbering, requests.

import type { Socket } from 'node:net';
import { ByteQueue, Parser, type Reading } from './byte-queue.ts';
import { StoreError, serverBug } from './errors.ts';
import { admit, denied, handshakeTimeoutMs, type Secret } from './handshake.ts';
import type { KeySpace } from './key-space.ts';
import { answer, type Request, readRequest } from './requests.ts';
import {
  oldRequestKinds,
  type RequestKind,
  requestKinds,
  stopWaiting,
  typeByte,
  validateMagic,
  waitCancelled,
} from './wire.ts';

// How long a client that was turned away may take to read so.
const denialTimeoutMs = 1_000;

/** Serves `socket` until it closes. Any error of a client ends its connection and nothing else. */
export function serveSession(socket: Socket, space: KeySpace, secret: Secret | undefined): void {
  new Session(socket, space).start(secret);
}

class Session {
  readonly #socket: Socket;
  readonly #space: KeySpace;
  readonly #queue = new ByteQueue();
  readonly #withdrawals = new Set<() => void>(); // of this client's waits and barriers

  constructor(socket: Socket, space: KeySpace) {
    this.#socket = socket;
    this.#space = space;
  }

  start(secret: Secret | undefined): void {
    const parser = new Parser(this.#conversation(secret));
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => {
      this.#queue.push(chunk);
      this.#socket.cork();
      try {
        if (parser.advance(this.#queue)) this.#turnAway();
      } catch (error) {
        this.#socket.destroy();
        if (!StoreError.isInstance(error)) process.emitWarning(serverBug(error));
      }
      this.#socket.uncork();
      // Someone who sends requests and does not read the replies is not listened to.
      if (this.#socket.writableNeedDrain) this.#socket.pause();
    });
    this.#socket.on('drain', () => this.#socket.resume());
    this.#socket.on('error', () => this.#socket.destroy());
    this.#socket.on('close', () => this.#withdrawAll());
  }

  /** Returns only when the client must be turned away. */
  *#conversation(secret: Secret | undefined): Reading<void> {
    if (secret !== undefined) {
      const timer = setTimeout(() => this.#socket.destroy(), handshakeTimeoutMs);
      this.#socket.once('close', () => clearTimeout(timer));
      if (!(yield* admit(secret, (bytes) => this.#socket.write(bytes)))) return;
      clearTimeout(timer);
    }
    const kinds = yield* this.#numbering();
    for (;;) this.#handle(yield* readRequest(kinds));
  }

  /** Clients from torch 2.1 on begin with validate; older ones number their requests differently. */
  *#numbering(): Reading<readonly RequestKind[]> {
    const first = Buffer.from(yield 1);
    if (!first.equals(typeByte('validate'))) {
      this.#queue.unshift(first);
      return oldRequestKinds;
    }
    const magic = Buffer.from(yield validateMagic.length);
    if (magic.equals(validateMagic)) return requestKinds;
    this.#queue.unshift(Buffer.concat([first, magic]));
    return oldRequestKinds;
  }

  #handle(request: Request): void {
    switch (request.kind) {
      case 'wait':
        this.#wait((done) => this.#space.watch(request.keys, done));
        return;
      case 'barrier':
        this.#wait((done) => this.#space.barrier(request.key, request.world, done));
        return;
      case 'cancelWait':
        this.#withdrawAll();
        this.#socket.write(waitCancelled);
        return;
      default:
        for (const piece of answer(this.#space, request)) this.#socket.write(piece);
    }
  }

  #wait(register: (done: () => void) => () => void): void {
    let isDone = false;
    let withdraw: (() => void) | undefined; // still undefined if register() finds the wait over
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

  /** Input is drained meanwhile: closing over unread input would reset the connection and lose the denial. */
  #turnAway(): void {
    this.#socket.removeAllListeners('data');
    this.#socket.resume();
    this.#socket.end(denied);
    const timer = setTimeout(() => this.#socket.destroy(), denialTimeoutMs);
    this.#socket.once('close', () => clearTimeout(timer));
  }
}
