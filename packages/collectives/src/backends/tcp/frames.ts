// The frames of control connections: all messages between ranks except data. Each frame begins with its length and
// kind. Numbers are little-endian.
import type { Failure } from '../../errors.ts';

/** The sender has called a collective. */
export interface Post {
  readonly kind: 'post';
  readonly seq: number;
  /** Factor of this rank for premulSum, as text, because JSON has no NaN, infinity or negative zero. */
  readonly factor: string;
  readonly signature: string;
  /** Elements that this rank sends to, and expects from, each rank in an allToAll; otherwise null. */
  readonly counts: readonly [sends: readonly number[], expects: readonly number[]] | null;
  /** The data that the sender sends to the receiver at once, if it is short. */
  readonly bytes: Uint8Array;
}
/** The sender has called send. `bytes` has the message if it is short. */
export interface Offer {
  readonly kind: 'offer';
  /** Index of the message among all messages from this rank to the receiver. */
  readonly id: number;
  readonly tag: number;
  readonly shape: string;
  readonly signature: string;
  readonly isInline: boolean;
  readonly bytes: Uint8Array;
}
/** The receiver of a message has called the matching recv. */
export interface Take {
  readonly kind: 'take';
  readonly id: number;
}
/** The sender has noticed a failure and asks the receiver to decide on the root cause. */
export interface Report {
  readonly kind: 'report';
  readonly failure: Failure;
}
/** The root cause has been decided. */
export interface Cause {
  readonly kind: 'cause';
  readonly failure: Failure;
}
/** 'question': the sender asks which ranks the receiver waits for. 'waiting' is the answer. */
export interface Question {
  readonly kind: 'question';
}
export interface Waiting {
  readonly kind: 'waiting';
  readonly waitsFor: readonly number[];
}
/**
 * 'goodbye': the sender has closed the group. 'goodbye heard': the answer of a rank that needs nothing more from it.
 */
export interface Goodbye {
  readonly kind: 'goodbye' | 'goodbye heard';
}
export type Frame = Post | Offer | Take | Report | Cause | Question | Waiting | Goodbye;

const kinds: readonly Frame['kind'][] = [
  'post',
  'offer',
  'take',
  'report',
  'cause',
  'question',
  'waiting',
  'goodbye',
  'goodbye heard',
];
const noBytes = new Uint8Array(0);

/** Maximum bytes of a frame that a peer may send: texts, counts and the bytes of a short message. */
const longest = 1 << 26;
const headerBytes = 9;

/** Returns a frame as bytes: its length without this number, its kind, the length of its text, the text, the bytes. */
export function encode({ kind, ...frame }: Frame): Buffer {
  const { bytes = noBytes, ...rest } = frame as Partial<Post>;
  const text = JSON.stringify(rest);
  const textBytes = Buffer.byteLength(text);
  const whole = Buffer.allocUnsafe(headerBytes + textBytes + bytes.length);
  whole.writeUInt32LE(headerBytes - 4 + textBytes + bytes.length, 0);
  whole.writeUInt8(kinds.indexOf(kind), 4);
  whole.writeUInt32LE(textBytes, 5);
  whole.write(text, headerBytes);
  whole.set(bytes, headerBytes + textBytes);
  return whole;
}

/** Splits the received bytes of a connection into frames. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;

  /** Yields the frames that this chunk completes. Throws if the bytes are no frames. */
  *read(chunk: Buffer): Generator<Frame> {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return;
    let bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#chunks = [];
    while (bytes.length >= 4) {
      const end = 4 + bytes.readUInt32LE(0);
      if (end > longest || end < headerBytes) throw new Error(`a frame of ${end} bytes`);
      this.#needed = end;
      if (bytes.length < end) break;
      yield decode(bytes.subarray(4, end));
      bytes = bytes.subarray(end);
      this.#needed = 4;
    }
    if (bytes.length > 0) this.#chunks.push(bytes);
    this.#length = bytes.length;
  }

  /** Number of bytes that the next step needs. */
  #needed = 4;
}

function decode(body: Buffer): Frame {
  const kind = kinds[body.readUInt8(0)];
  if (kind === undefined) throw new Error('a frame of an unknown kind');
  const end = 5 + body.readUInt32LE(1);
  if (end > body.length) throw new Error('a frame with a text that is too long');
  const rest = JSON.parse(body.toString('utf8', 5, end)) as object;
  const bytes = body.subarray(end);
  return { kind, ...rest, bytes } as Frame;
}
