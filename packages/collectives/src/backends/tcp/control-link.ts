// The connection over which one pair of ranks exchanges everything but data. It is always read, so that a
// failure is heard however far behind this rank is, and its end is how the loss of a rank is noticed.
import type { Socket } from 'node:net';
import { encode, type Frame, FrameReader } from './frames.ts';

export interface ControlEvents {
  readonly onFrame: (frame: Frame) => void;
  /** The connection has ended; `reason` is the middle of a sentence. Called once. */
  readonly onEnd: (reason: string) => void;
}

export class ControlLink {
  readonly #socket: Socket;
  #reason: string | null = null;
  #isEnded = false;

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
      try {
        for (const frame of reader.read(chunk)) events.onFrame(frame);
      } catch (error) {
        this.#reason ??= `it sent garbage: ${(error as Error).message}`;
        socket.destroy();
      }
    });
    socket.on('error', ({ message }) => {
      this.#reason ??= `its connection broke: ${message}`;
    });
    socket.on('end', end);
    socket.on('close', end);
    if (socket.readableEnded || socket.destroyed) setImmediate(end);
    socket.resume();
  }

  /** Sends a frame, after all earlier ones. Does nothing if the connection has ended. */
  send(frame: Frame): void {
    if (this.#socket.writable) this.#socket.write(encode(frame));
  }

  /** Sends no more, after all earlier frames. */
  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
