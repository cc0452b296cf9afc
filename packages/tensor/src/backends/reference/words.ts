// The words of a random stream, as docs/decisions/2026-11-21-random-stream.md specifies them.
import { philox4x32 } from '../../random/philox.ts';
import type { Stream } from '../operands.ts';

/** Returns a function that returns word w of the stream. */
export function wordsOf({ seed, offset }: Stream): (w: number) => number {
  const key = Uint32Array.of(seed >>> 0, Math.floor(seed / 2 ** 32));
  const words = new Uint32Array(4);
  let current = -1;
  return (w) => {
    const block = offset + Math.floor(w / 4);
    if (block !== current) {
      philox4x32(words, Uint32Array.of(block >>> 0, Math.floor(block / 2 ** 32), 0, 0), key);
      current = block;
    }
    return words[w % 4]!;
  };
}

/** Returns a function that returns the dropout factor of element i: 0 with probability p, else 1 / (1 − p). */
export function dropoutFactor(p: number, stream: Stream): (i: number) => number {
  const words = wordsOf(stream);
  const limit = Math.floor(p * 2 ** 32);
  return (i) => (words(i) < limit ? 0 : 1 / (1 - p));
}
