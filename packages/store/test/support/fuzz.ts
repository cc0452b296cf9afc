// Sends frames to the store's server: well-formed ones, and ones that a broken or hostile client might send. Every byte
// comes from a seed. The sockets are inside this process and deliver at once, so a million frames take a minute or two.

import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { KeySpace } from '../../src/server/key-space.ts';
import { newServerState, type ServerState } from '../../src/server/server-state.ts';
import { serveSession } from '../../src/server/session.ts';
import { oldRequestKinds, type RequestKind, requestKinds, u64, validateMagic } from '../../src/wire/wire.ts';

export type Mode = 'new' | 'old' | 'outsider' | 'member';
export const modes: readonly Mode[] = ['new', 'old', 'outsider', 'member'];
const secret = 'the secret of the job';

/** Returns a generator of numbers from 0 to 1, which are the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Both ends of a connection. The server's end has the members of net.Socket that a session uses. */
class Wire extends Duplex {
  replied = Buffer.alloc(0);
  override _read(): void {}
  override _write(chunk: Buffer, _: string, done: () => void): void {
    // Only the replies of the authentication are read.
    if (this.replied.length < 256) this.replied = Buffer.concat([this.replied, chunk.subarray(0, 256)]);
    done();
  }
  setNoDelay(): this {
    return this;
  }
  /** Delivers bytes to the server at once, or when the server, if it has paused, resumes. */
  deliver(bytes: Buffer): void {
    if (!this.destroyed) this.emit('data', bytes);
  }
}

export class Fuzzer {
  /** Number of frames sent so far. */
  frames = 0;
  /** Number of frames after which the client was still connected. */
  survived = 0;
  sessions = 0;
  readonly #random: () => number;
  #space = new KeySpace();

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  /** Runs one connection: sends up to `maxFrames` frames, until the server or the client ends it. */
  session(mode: Mode, maxFrames = 40): void {
    this.sessions++;
    // The test measures memory, so the keys that the fuzzer stores must not pile up.
    if (this.sessions % 500 === 0) this.#space = new KeySpace();
    const wire = new Wire();
    wire.on('error', () => {});
    serveSession(
      wire as unknown as Socket,
      this.#state(['outsider', 'member'].includes(mode) ? secret : undefined),
    );
    if (mode === 'member') this.#introduce(wire);
    const kinds = mode === 'old' ? oldRequestKinds : requestKinds;
    if (mode === 'new' || mode === 'member') wire.deliver(Buffer.concat([Buffer.of(0), validateMagic]));
    for (let i = 0; i < maxFrames && !wire.destroyed && !wire.writableEnded; i++) {
      this.frames++;
      this.#deliver(wire, mode === 'outsider' ? this.#knock() : this.#frame(kinds));
      if (!wire.destroyed) this.survived++;
    }
    wire.destroy();
  }

  /** Tells whether the store that was fuzzed last still answers requests correctly. */
  serves(): boolean {
    const wire = new Wire();
    serveSession(wire as unknown as Socket, this.#state(secret));
    this.#introduce(wire);
    wire.deliver(Buffer.concat([Buffer.of(0), validateMagic]));
    wire.replied = Buffer.alloc(0);
    const sized = (text: string) => Buffer.concat([u64(text.length), Buffer.from(text)]);
    wire.deliver(
      Buffer.concat([Buffer.of(1), sized('/check'), sized('hello'), Buffer.of(3), sized('/check')]),
    );
    const isRight = wire.replied.equals(sized('hello'));
    wire.destroy();
    return isRight;
  }

  #state(secret: string | undefined): ServerState {
    return { ...newServerState(secret), space: this.#space };
  }

  #introduce(wire: Wire): void {
    const hello = Buffer.from('\xf7rwauth1', 'latin1');
    const nonce = this.#bytes(32);
    wire.deliver(Buffer.concat([hello, nonce]));
    const proof = createHmac('sha256', secret).update('ringwise store handshake 1 client').update(nonce);
    wire.deliver(proof.update(wire.replied.subarray(8, 40)).digest());
  }

  /** Returns bytes that a client without the secret may try. */
  #knock(): Buffer {
    const hello = Buffer.from('\xf7rwauth1', 'latin1');
    return this.#pick([
      () => this.#bytes(this.#below(100)),
      () => Buffer.concat([hello, this.#bytes(32), this.#bytes(32)]),
      () => hello.subarray(0, this.#below(8)),
      () => this.#frame(requestKinds),
    ])();
  }

  #frame(kinds: readonly RequestKind[]): Buffer {
    const frame = this.#request(kinds, this.#below(kinds.length));
    const luck = this.#random();
    if (luck < 0.8) return frame;
    if (luck < 0.85) return this.#bytes(this.#below(64));
    if (luck < 0.9) return frame.subarray(0, this.#below(frame.length));
    // Change a few bytes of the frame.
    const broken = Buffer.from(frame);
    for (let i = this.#below(3); i >= 0; i--) broken[this.#below(broken.length)] = this.#below(256);
    return broken;
  }

  #request(kinds: readonly RequestKind[], type: number): Buffer {
    const key = () => this.#sized(Buffer.from(`/k${this.#below(50)}`));
    const value = () =>
      this.#random() < 0.3
        ? this.#sized(Buffer.from(`${this.#below(1e9)}`))
        : this.#sized(this.#bytes(this.#below(300)));
    const list = (item: () => Buffer[]) => {
      const items = Array.from({ length: this.#below(5) }, item).flat();
      return [this.#length(items.length), ...items];
    };
    const args: Record<RequestKind, () => Buffer[]> = {
      validate: () => [validateMagic],
      set: () => [key(), value()],
      append: () => [key(), value()],
      queuePush: () => [key(), value()],
      compareSet: () => [key(), value(), value()],
      get: () => [key()],
      delete: () => [key()],
      queuePop: () => [key()],
      queueLength: () => [key()],
      watchKey: () => [key()],
      add: () => [key(), u64(BigInt.asIntN(64, BigInt(this.#below(2 ** 40)) - 2n ** 39n))],
      barrier: () => [key(), u64(this.#below(4))],
      check: () => list(() => [key()]),
      wait: () => list(() => [key()]),
      multiGet: () => list(() => [key()]),
      multiSet: () => list(() => [key(), value()]),
      numKeys: () => [],
      listKeys: () => [],
      cancelWait: () => [],
      ping: () => [this.#bytes(4)],
    };
    return Buffer.concat([Buffer.of(type), ...args[kinds[type]!]()]);
  }

  /** Delivers a frame in pieces of random sizes. */
  #deliver(wire: Wire, frame: Buffer): void {
    let at = 0;
    while (at < frame.length) {
      const end = this.#random() < 0.7 ? frame.length : at + 1 + this.#below(frame.length - at);
      wire.deliver(frame.subarray(at, end));
      at = end;
    }
  }

  #sized(bytes: Buffer): Buffer {
    return Buffer.concat([this.#length(bytes.length), bytes]);
  }

  /** Returns a length for the frame: in most cases `value`, otherwise a wrong one. */
  #length(value: number): Buffer {
    if (this.#random() < 0.98) return u64(value);
    return this.#pick([
      u64(value + 1),
      u64(2 ** 17),
      u64(2 ** 23),
      u64(2 ** 23 + 1),
      u64(2n ** 62n),
      u64(-1),
    ]);
  }

  #bytes(count: number): Buffer {
    return Buffer.from(Uint8Array.from({ length: count }, () => this.#below(256)));
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#below(items.length)]!;
  }
}
