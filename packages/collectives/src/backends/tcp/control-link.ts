// The control connection of a pair of ranks carries everything except data. It is always read, so that reports of
// failures arrive even if this rank is far behind, and its end shows that the peer is lost.
import type { Socket } from 'node:net';
import { endSocket } from './end-socket.ts';
import { encode, type Frame, FrameReader } from './frames.ts';
import { later } from './later.ts';

export interface ControlEvents {
  readonly onFrame: (frame: Frame) => void;
  /** Called once, when the connection has ended. `reason` is the middle of a sentence. */
  readonly onEnd: (reason: string) => void;
}

/** Milliseconds after a failed write within which the end of the connection must be read. */
const lastReadMs = 100;

export class ControlLink {
  readonly #socket: Socket;
  /**
   * Frames of this turn of the event loop, sent in one write. If the peer has ended, a second write would fail and lose
   * the data that the peer sent before.
   */
  readonly #waiting: Buffer[] = [];
  #reason: string | null = null;
  #isEnded = false;
  /** True if nothing more can be sent. */
  #isBroken = false;

  /** Takes ownership of the socket, which has been authenticated. */
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

  /** Sends a frame after all earlier ones: posts and offers at the end of the turn, others at once. */
  send(frame: Frame): void {
    const isCall = frame.kind === 'post' || frame.kind === 'offer';
    if (isCall && this.#waiting.length === 0) setImmediate(() => this.#flush());
    this.#waiting.push(encode(frame));
    if (!isCall) this.#flush();
  }

  /** Stops sending after all earlier frames. Resolves when they have left this process, or cannot be sent. */
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
 * Makes a socket continue to read after a failed write. Node would destroy it and lose unread data of the peer, such as
 * the report of its failure.
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
