// A socket that sends and expects bytes written as hex. ⟨n⟩ stands for n in eight little-endian bytes.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Returns the bytes that `text` stands for. */
export function bytesOf(text: string): Buffer {
  const hex = text.replace(/⟨(-?\d+)⟩/g, (_, n) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(n));
    return bytes.toString('hex');
  });
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

export class RawClient {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #wake = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      this.#wake();
    });
    socket.on('error', () => {});
    socket.on('close', () => this.#wake());
  }

  static async connect(address: { host: string; port: number }): Promise<RawClient> {
    const socket = connect({ ...address, noDelay: true });
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  send(text: string): void {
    this.socket.write(bytesOf(text));
  }

  /** Resolves with the next `count` bytes as hex, or fewer if the server ends the connection first. */
  async take(count: number): Promise<string> {
    while (this.#received.length < count && !this.socket.closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const taken = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(taken.length);
    return taken.toString('hex');
  }

  /** Sends `request` and reads as many bytes as `reply` has. Returns both replies as hex for a comparison. */
  async ask(request: string, reply: string): Promise<{ got: string; expected: string }> {
    this.send(request);
    const expected = bytesOf(reply);
    return { got: await this.take(expected.length), expected: expected.toString('hex') };
  }

  /** Waits until the server has ended the connection. Resolves with the received bytes that no call has taken. */
  async untilClosed(): Promise<string> {
    return await this.take(Number.POSITIVE_INFINITY);
  }

  /** Number of received bytes that no call has taken. */
  get untaken(): number {
    return this.#received.length;
  }
}
