// The connection that carries the data of one pair of ranks, in both directions. Data is cut into frames, each with a
// header of three numbers. The receiver may take less than has come; the connection then
// waits, which in the end stops the sender. Data that is ready late (results) overtakes data that was ready
// early (terms).
import type { Socket } from 'node:net';
import { pieceBytes } from './combiner.ts';
import { endSocket } from './end-socket.ts';

/** What a frame carries: bytes that a collective sends at once, its results, or a message. */
export const Stream = { first: 1, results: 2, message: 3 } as const;

const headerBytes = 12;
/** Bytes that are handed to the socket at once. More waits here, so that results can overtake it. */
const bytesInFlight = 4 * pieceBytes;

export interface DataEvents {
  /**
   * Bytes have come: of the collective `id`, or of the message `id`. Returns how many the receiver took; the
   * rest is offered again after resume(). Returns -1 if the receiver expects no such bytes.
   */
  readonly onData: (stream: number, id: number, bytes: Uint8Array) => number;
  /** No more data will come. `isGarbage` is true if the peer sent what nobody expects. */
  readonly onEnd: (isGarbage: boolean) => void;
  /** What has not been sent never will be. Called once. */
  readonly onBroken: () => void;
}

interface Sending {
  readonly stream: number;
  readonly id: number;
  readonly bytes: Uint8Array;
  sent: number;
  readonly onSent: () => void;
}

export class DataLink {
  readonly #socket: Socket;
  readonly #events: DataEvents;
  readonly #urgent: Sending[] = [];
  readonly #queue: Sending[] = [];
  #inFlight = 0;
  /** Bytes that have come and that the receiver has not taken. */
  #rest: Uint8Array | null = null;
  readonly #header = Buffer.alloc(headerBytes);
  #headerGot = 0;
  /** Bytes of the current frame that have not been taken. */
  #left = 0;
  /** The peer sends no more. #rest may still have bytes that came before. */
  #isClosed = false;
  #isEnded = false;
  #isBroken = false;
  #isTaking = false;
  /** resume() was called while the receiver was taking bytes. */
  #isResumed = false;

  /** Takes over the socket, which has been proven to be the peer's. */
  constructor(socket: Socket, events: DataEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.on('data', (chunk: Uint8Array) => this.#take(chunk));
    socket.on('error', () => {}); // 'close' follows
    socket.on('end', () => this.#close());
    socket.on('close', () => {
      this.#close();
      this.#break();
    });
    if (socket.readableEnded || socket.destroyed) setImmediate(() => this.#close());
    socket.resume();
  }

  /** Whether no more data will come. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether nothing more can be sent. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /**
   * Sends bytes without copying them, after what was given before, or before it if they are urgent. Calls
   * `onSent` when the memory is not needed any more, never before this returns, and not if the link breaks.
   */
  send(stream: number, id: number, bytes: Uint8Array, isUrgent: boolean, onSent: () => void): void {
    if (this.#isBroken) return;
    (isUrgent ? this.#urgent : this.#queue).push({ stream, id, bytes, sent: 0, onSent });
    this.#pump();
  }

  /** Offers the bytes that were not taken again. */
  resume(): void {
    this.#isResumed = true;
    if (this.#rest === null || this.#isTaking) return;
    const rest = this.#rest;
    this.#rest = null;
    this.#take(rest);
    if (this.#rest !== null) return;
    if (this.#isClosed) this.#end(false);
    else this.#socket.resume();
  }

  /** Sends no more, after what was given before. Resolves when all of it has left this process, or cannot. */
  end(): Promise<void> {
    return endSocket(this.#socket);
  }

  destroy(): void {
    this.#rest = null;
    this.#socket.destroy();
  }

  #pump(): void {
    while (this.#inFlight < bytesInFlight && !this.#isBroken) {
      const queue = this.#urgent.length > 0 ? this.#urgent : this.#queue;
      const [sending] = queue;
      if (sending === undefined) return;
      const piece = sending.bytes.subarray(sending.sent, sending.sent + pieceBytes);
      sending.sent += piece.length;
      const isLast = sending.sent === sending.bytes.length;
      if (isLast) queue.shift();
      const header = Buffer.allocUnsafe(headerBytes);
      header.writeUInt32LE(sending.stream, 0);
      header.writeUInt32LE(sending.id, 4);
      header.writeUInt32LE(piece.length, 8);
      this.#inFlight += piece.length;
      this.#socket.cork();
      this.#socket.write(header);
      this.#socket.write(piece, (error) => {
        if (error) {
          this.#break();
          return;
        }
        this.#inFlight -= piece.length;
        if (isLast) sending.onSent();
        this.#pump();
      });
      this.#socket.uncork();
    }
  }

  #take(chunk: Uint8Array): void {
    this.#isTaking = true;
    let at = 0;
    while (at < chunk.length && !this.#isEnded) {
      if (this.#left === 0) {
        const part = chunk.subarray(at, at + headerBytes - this.#headerGot);
        this.#header.set(part, this.#headerGot);
        this.#headerGot += part.length;
        at += part.length;
        if (this.#headerGot < headerBytes) break;
        this.#headerGot = 0;
        this.#left = this.#header.readUInt32LE(8);
        continue;
      }
      const bytes = chunk.subarray(at, at + this.#left);
      this.#isResumed = false;
      const taken = this.#events.onData(this.#header.readUInt32LE(0), this.#header.readUInt32LE(4), bytes);
      if (taken < 0) {
        this.#socket.destroy();
        this.#end(true);
        break;
      }
      at += taken;
      this.#left -= taken;
      if (taken < bytes.length && !this.#isResumed) {
        this.#rest = chunk.subarray(at);
        this.#socket.pause();
        break;
      }
    }
    this.#isTaking = false;
  }

  #break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#urgent.length = 0;
    this.#queue.length = 0;
    this.#events.onBroken();
  }

  /** Ends the link when the receiver has taken what came before. */
  #close(): void {
    this.#isClosed = true;
    if (this.#rest === null) this.#end(false);
  }

  #end(isGarbage: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#events.onEnd(isGarbage);
  }
}
