// The random stream as docs/decisions/2026-11-21-random-stream.md has it.

import { philox4x32 } from '../../random/philox.ts';
import { fillNormal, fillUniform } from '../../random/random-fill.ts';
import type { RandomKind } from '../kernels.ts';
import type { Stream, Strided } from '../operands.ts';

/** A function that gives word w of the stream. */
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

export function random(
  kind: RandomKind,
  { memory, offset }: Strided,
  count: number,
  stream: Stream,
  low: number,
  high: number,
): void {
  if (kind === 'uniform' || kind === 'normal') {
    const out = (memory.host as Float32Array).subarray(offset, offset + count);
    if (kind === 'uniform') fillUniform(out, stream, low, high);
    else fillNormal(out, stream);
    return;
  }
  const words = wordsOf(stream);
  const out = memory.host as BigInt64Array;
  for (let i = 0; i < count; i++) {
    out[offset + i] =
      kind === 'integers'
        ? BigInt(low) + ((BigInt(words(i)) * BigInt(high - low)) >> 32n)
        : ((BigInt(words(2 * i + 1)) << 32n) | BigInt(words(2 * i))) >> 1n;
  }
}

/** The factor of element i: 0 or 1 / (1 − p). */
export function keeping(p: number, stream: Stream): (i: number) => number {
  const words = wordsOf(stream);
  const limit = Math.floor(p * 2 ** 32);
  return (i) => (words(i) < limit ? 0 : 1 / (1 - p));
}

export function dropout(out: Strided, a: Strided, count: number, p: number, stream: Stream): void {
  const factor = keeping(p, stream);
  for (let i = 0; i < count; i++) {
    const f = factor(i);
    out.memory.host[out.offset + i] = f === 0 ? 0 : (a.memory.host[a.offset + i] as number) * f;
  }
}
