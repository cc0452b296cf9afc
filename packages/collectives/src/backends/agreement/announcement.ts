// The text that describes a rank's call: one line for each operation. Ranks announce their texts to each other
// as length, digest and beginning; a short text fits whole. All announcements have the same length.
import type { AllGather } from '../../backend.ts';
import { asBuffer } from '../../group/buffer.ts';

const announcedBytes = 160;
const headBytes = 8;

export const textOf = (lines: readonly string[]): Uint8Array => Buffer.from(lines.join('\n'));

/** The announcements of all ranks for one call. Later calls reuse the memory, because calls are frequent. */
export class Announcements {
  readonly #size: number;
  readonly #mine = Buffer.alloc(announcedBytes);
  readonly #all: Buffer;
  readonly #memory: Pick<AllGather, 'input' | 'output'>;

  constructor(size: number) {
    this.#size = size;
    this.#all = Buffer.alloc(size * announcedBytes);
    this.#memory = { input: asBuffer(this.#mine), output: asBuffer(this.#all) };
  }

  /** Returns the allGather that exchanges the announcements. Its buffers belong to this object. */
  gather(text: Uint8Array, seq: number, timeoutMs: number): AllGather {
    const mine = this.#mine;
    mine.writeUInt32LE(text.length, 0);
    mine.writeUInt32LE(digestOf(text), 4);
    const room = announcedBytes - headBytes;
    mine.set(text.length > room ? text.subarray(0, room) : text, headBytes);
    mine.fill(0, Math.min(headBytes + text.length, announcedBytes));
    return { verb: 'allGather', seq, timeoutMs, packing: 0, ...this.#memory, counts: null };
  }

  /** Returns the first rank whose announcement differs from rank 0's, or -1 if there is none. */
  firstOther(): number {
    const all = this.#all;
    for (let rank = 1; rank < this.#size; rank++) {
      const from = rank * announcedBytes;
      if (all.compare(all, from, from + announcedBytes, 0, announcedBytes) !== 0) return rank;
    }
    return -1;
  }

  /** Returns the length in bytes of a rank's whole text. */
  lengthOf(rank: number): number {
    return this.#all.readUInt32LE(rank * announcedBytes);
  }

  /** Returns a copy of the part of a rank's text that was announced. */
  textOf(rank: number): Uint8Array {
    const from = rank * announcedBytes + headBytes;
    return Uint8Array.from(
      this.#all.subarray(from, from + Math.min(this.lengthOf(rank), announcedBytes - headBytes)),
    );
  }
}

/** Returns the index of the first operation where two texts differ, and each side's description of it. */
export function differenceOf(
  one: Uint8Array,
  other: Uint8Array,
): { readonly index: number; readonly sides: readonly [string, string] } {
  const [mine, theirs] = [linesOf(one), linesOf(other)];
  const found = mine.findIndex((line, at) => line !== theirs[at]);
  const index = found < 0 ? mine.length : found;
  const isList = mine.length > 1 || theirs.length > 1;
  return { index, sides: [sideOf(mine, index, isList), sideOf(theirs, index, isList)] };
}

function linesOf(text: Uint8Array): string[] {
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString().split('\n');
}

/** Returns a description such as "allReduce sum 3 × float32", for lists with its position in the list. */
function sideOf(lines: readonly string[], index: number, isList: boolean): string {
  const line = lines[index];
  if (!isList && line !== undefined) return line;
  if (line === undefined) return `no more than ${lines.length} on the device`;
  return `${line} as number ${index + 1} of ${lines.length} on the device`;
}

/** Returns the FNV-1a hash, 32 bits. */
function digestOf(text: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of text) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
