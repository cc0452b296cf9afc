// The data connection of a pair of ranks, used in both directions. Data is cut into frames with a header of three
// numbers. If the receiver accepts less than has arrived, the link stops reading, which in the end stops the sender
// (backpressure). Results, which are ready late, overtake terms, which are ready early.
import type { Socket } from 'node:net';
import { pieceBytes } from './combiner.ts';
import { endSocket } from './end-socket.ts';

/** Content of a frame: data that a collective sends at once, its results, or a message. */
export const Stream = { first: 1, results: 2, message: 3 } as const;

const headerBytes = 12;
/** Bytes given to the socket at a time. The rest waits in this object, so that results can overtake it. */
const bytesInFlight = 4 * pieceBytes;

export interface DataEvents {
  /**
   * Called when bytes of the collective or message `id` have arrived. Returns how many the receiver accepted; the rest
   * is offered again after resume(). Returns -1 if the receiver expects no such bytes.
   */
  readonly onData: (stream: number, id: number, bytes: Uint8Array) => number;
  /** Called when no more data will arrive. `isGarbage` is true if the peer sent bytes that were not expected. */
  readonly onEnd: (isGarbage: boolean) => void;
  /** Called once, when the data that has not been sent can never be sent. */
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
  /** Bytes that have arrived and that the receiver has not accepted. */
  #rest: Uint8Array | null = null;
  readonly #header = Buffer.alloc(headerBytes);
  #headerGot = 0;
  /** Bytes of the current frame that have not been accepted. */
  #left = 0;
  /** True if the peer sends no more. #rest may still have bytes that arrived before. */
  #isClosed = false;
  #isEnded = false;
  #isBroken = false;
  #isTaking = false;
  /** True if resume() was called while the receiver was accepting bytes. */
  #isResumed = false;

  /** Takes ownership of the socket, which has been authenticated. */
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

  /** Whether no more data will arrive. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether nothing more can be sent. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /**
   * Sends bytes without copying them: after all earlier bytes, or before them if `isUrgent`. Calls `onSent` when the
   * caller may reuse the memory, never before this returns, and not if the link breaks.
   */
  send(stream: number, id: number, bytes: Uint8Array, isUrgent: boolean, onSent: () => void): void {
    if (this.#isBroken) return;
    (isUrgent ? this.#urgent : this.#queue).push({ stream, id, bytes, sent: 0, onSent });
    this.#pump();
  }

  /** Offers the bytes that were not accepted again. */
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

  /** Stops sending after all earlier data. Resolves when it has left this process, or cannot be sent. */
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

  /** Ends the link once the receiver has accepted all data that arrived before. */
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
