// The connection over which one pair of ranks exchanges everything but data. It is always read, so that a
// failure is heard however far behind this rank is, and its end is how the loss of a rank is noticed.
import type { Socket } from 'node:net';
import { endSocket } from './end-socket.ts';
import { encode, type Frame, FrameReader } from './frames.ts';
import { later } from './later.ts';

export interface ControlEvents {
  readonly onFrame: (frame: Frame) => void;
  /** The connection has ended; `reason` is the middle of a sentence. Called once. */
  readonly onEnd: (reason: string) => void;
}

/** Time after a write has failed in which the end of the connection must be read. */
const lastReadMs = 100;

export class ControlLink {
  readonly #socket: Socket;
  /** Calls of this turn. They leave in one write: a second one to a rank that has ended would lose what it said. */
  readonly #waiting: Buffer[] = [];
  #reason: string | null = null;
  #isEnded = false;
  /** Nothing can be sent any more. */
  #isBroken = false;

  /** Takes over the socket, which has been proven to be the peer's. */
  constructor(socket: Socket, events: ControlEvents) {
    this.#socket = socket;
    const reader = new FrameReader();
    const end = () => {
      if (this.#isEnded) return;
      this.#isEnded = true;
      events.onEnd(this.#reason ?? 'its connection closed');
    };
    socket.on('data', (chunk) => {
      const frames: Frame[] = [];
      try {
        for (const frame of reader.read(chunk)) frames.push(frame);
      } catch (error) {
        this.#reason ??= `it sent garbage: ${(error as Error).message}`;
        socket.destroy();
      }
      for (const frame of frames) events.onFrame(frame);
    });
    socket.on('error', ({ message }) => {
      this.#reason ??= `its connection broke: ${message}`;
    });
    readOnAfterFailedWrites(socket, ({ message }) => {
      if (this.#isBroken) return;
      this.#isBroken = true;
      this.#reason ??= `its connection broke: ${message}`;
      later(lastReadMs, () => socket.destroy(), false);
    });
    socket.on('end', end);
    socket.on('close', end);
    if (socket.readableEnded || socket.destroyed) setImmediate(end);
    socket.resume();
  }

  /** Sends a frame, after all earlier ones: calls at the end of the turn, others at once. */
  send(frame: Frame): void {
    const isCall = frame.kind === 'post' || frame.kind === 'offer';
    if (isCall && this.#waiting.length === 0) setImmediate(() => this.#flush());
    this.#waiting.push(encode(frame));
    if (!isCall) this.#flush();
  }

  /** Sends no more, after all earlier frames. Resolves when all of them have left this process, or cannot. */
  end(): Promise<void> {
    this.#flush();
    return endSocket(this.#socket);
  }

  #flush(): void {
    const frames = this.#waiting.splice(0);
    if (frames.length > 0 && this.#socket.writable && !this.#isBroken)
      this.#socket.write(Buffer.concat(frames));
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/**
 * Makes a socket go on reading after a write has failed. Node would destroy it, and what the peer had said before it
 * ended, such as why, would be lost.
 */
function readOnAfterFailedWrites(socket: Socket, onFailed: (error: Error) => void): void {
  const { _write: writeOne, _writev: writeAll } = socket;
  const reported = (done: () => void) => (error?: Error | null) => {
    if (error) onFailed(error);
    done();
  };
  socket._write = (chunk, encoding, done) => writeOne.call(socket, chunk, encoding, reported(done));
  if (writeAll) socket._writev = (chunks, done) => writeAll.call(socket, chunks, reported(done));
}
