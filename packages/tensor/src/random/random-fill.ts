// Fills JavaScript arrays with uniform or normal numbers, by the rules of
// docs/decisions/2026-11-21-random-stream.md. Used by the reference kernels, and by Generator for arrays that
// are no tensors.
import type { Stream } from '../backends/operands.ts';
import { philox4x32 } from './philox.ts';

const unit = 2 ** -24;

/** Calls body(i, words) for i = 0, 4, 8, … below `count`, with the four words for elements i … i + 3. */
function forEachBlock(
  { seed, offset }: Stream,
  count: number,
  body: (i: number, words: Uint32Array) => void,
): void {
  const key = Uint32Array.of(seed >>> 0, Math.floor(seed / 2 ** 32));
  const counter = new Uint32Array(4);
  const words = new Uint32Array(4);
  for (let i = 0, block = offset; i < count; i += 4, block++) {
    counter[0] = block >>> 0;
    counter[1] = Math.floor(block / 2 ** 32);
    philox4x32(words, counter, key);
    body(i, words);
  }
}

/** Fills `out` with numbers in [low, high), each made from the upper 24 bits of a word. */
export function fillUniform(out: Float32Array, stream: Stream, low: number, high: number): void {
  const scale = (high - low) * unit;
  forEachBlock(stream, out.length, (i, words) => {
    const n = Math.min(4, out.length - i);
    for (let j = 0; j < n; j++) out[i + j] = low + (words[j]! >>> 8) * scale;
  });
}

/** Fills `out` with normal numbers of mean 0 and variance 1, by Box–Muller on pairs of words. */
export function fillNormal(out: Float32Array, stream: Stream): void {
  forEachBlock(stream, out.length, (i, words) => {
    const n = Math.min(4, out.length - i);
    for (let j = 0; j < n; j++) {
      // The uniform number is in (0, 1], so that its logarithm is finite.
      const radius = Math.sqrt(-2 * Math.log(((words[j & 2]! >>> 8) + 1) * unit));
      const angle = 2 * Math.PI * (words[(j & 2) + 1]! >>> 8) * unit;
      out[i + j] = radius * (j & 1 ? Math.sin(angle) : Math.cos(angle));
    }
  });
}
