// Contract of random numbers and dropout, from the definition of the random stream.
import { describe, expect, test } from 'vitest';
import type { Stream } from '../../../src/backends/operands.ts';
import type { DType } from '../../../src/core/dtype.ts';
import { philox4x32 } from '../../../src/random/philox.ts';
import { noise } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

/** Returns word w of a stream: a block of Philox has four words, and the stream begins at block `offset`. */
export function wordAt({ seed, offset }: Stream, w: number): number {
  const block = BigInt(offset) + BigInt(Math.floor(w / 4));
  const counter = Uint32Array.of(Number(block & 0xffffffffn), Number(block >> 32n), 0, 0);
  const out = new Uint32Array(4);
  philox4x32(out, counter, Uint32Array.of(seed % 2 ** 32, Math.floor(seed / 2 ** 32)));
  return out[w % 4]!;
}

const streams: Stream[] = [
  { seed: 0, offset: 0 },
  { seed: 2 ** 40 + 7, offset: 5 },
  // The counter passes 2^32 during the fill.
  { seed: 3, offset: 2 ** 32 - 3 },
];
const counts = [0, 1, 3, 4, 5, 63, 64, 65, 200];

export function randomContract(bench: Workbench): void {
  describe.each(streams)('random from seed $seed, offset $offset', (stream) => {
    const word = (i: number): number => wordAt(stream, i);

    test('uniform: the upper 24 bits of a word, bit by bit', () => {
      for (const count of counts) {
        for (const [low, high] of [
          [0, 1],
          [-0.3, 0.7],
        ] as const) {
          const out = bench.dirty(count);
          bench.kernels.random({ out }, { kind: 'uniform', count, stream, low, high });
          const scale = (high - low) / 2 ** 24;
          const want = Array.from({ length: count }, (_, i) => Math.fround(low + (word(i) >>> 8) * scale));
          expect(valuesOf(out)).toEqual(want);
        }
      }
    });

    test('normal: Box–Muller on pairs of words, to the last bit but one', () => {
      for (const count of counts) {
        const out = bench.dirty(count);
        bench.kernels.random({ out }, { kind: 'normal', count, stream, low: 0, high: 0 });
        for (const [i, value] of valuesOf(out).entries()) {
          const radius = Math.sqrt(-2 * Math.log(((word(i - (i % 2)) >>> 8) + 1) / 2 ** 24));
          const angle = (2 * Math.PI * (word(i - (i % 2) + 1) >>> 8)) / 2 ** 24;
          const want = radius * (i % 2 === 0 ? Math.cos(angle) : Math.sin(angle));
          expect(Math.abs(value - want)).toBeLessThanOrEqual(Math.abs(want) * 2 ** -23 + 1e-15);
        }
      }
    });

    test('integers of a range, and 63 bits', () => {
      for (const count of counts) {
        for (const [low, high] of [
          [0, 1],
          [-5, 6],
          [0, 2 ** 32],
        ] as const) {
          const out = bench.dirty(count, 'int64');
          bench.kernels.random({ out }, { kind: 'integers', count, stream, low, high });
          const want = Array.from(
            { length: count },
            (_, i) => low + Number((BigInt(word(i)) * BigInt(high - low)) >> 32n),
          );
          expect(valuesOf(out)).toEqual(want);
        }
        const bits = bench.dirty(count, 'int64');
        bench.kernels.random({ out: bits }, { kind: 'bits', count, stream, low: 0, high: 0 });
        const want = Array.from(
          { length: count },
          (_, i) => ((BigInt(word(2 * i + 1)) << 32n) | BigInt(word(2 * i))) >> 1n,
        );
        expect(Array.from(bits.memory.host as BigInt64Array)).toEqual(want);
      }
    });

    test.each(['float32', 'float64'] as DType[])('dropout of %s drops where the word is low', (dtype) => {
      for (const count of counts) {
        for (const p of [0.1, 0.5, 0.9]) {
          const values = noise(count);
          const [a, out] = [bench.put(dtype, values), bench.dirty(count, dtype)];
          bench.kernels.dropout({ out, a }, { count, p, stream });
          const round = dtype === 'float32' ? Math.fround : Number;
          for (const [i, value] of valuesOf(out).entries()) {
            if (word(i) < Math.floor(p * 2 ** 32)) expect(value).toBe(0);
            else expect(value).toBeCloseTo(round(values[i]! / (1 - p)), 5);
          }
        }
      }
    });
  });
}
