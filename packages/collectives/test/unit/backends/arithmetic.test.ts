import { describe, expect, it } from 'vitest';
import { reduce } from '../../../src/backends/arithmetic/arithmetic.ts';
import { fromBfloat16, toBfloat16, toFloat16 } from '../../../src/backends/arithmetic/narrow-floats.ts';
import { asBuffer, type BufferLike, isReducible, reduceOps } from '../../../src/index.ts';

const terms = (...likes: BufferLike[]) => likes.map((like) => ({ buffer: asBuffer(like), factor: 1 }));

describe('reduce', () => {
  it('wraps integers of every width', () => {
    expect([...reduce('sum', terms(Int8Array.of(127), Int8Array.of(1)))]).toEqual([-128]);
    expect([...reduce('sum', terms(Uint32Array.of(2 ** 32 - 1), Uint32Array.of(2)))]).toEqual([1]);
    expect([...reduce('sum', terms(BigInt64Array.of(2n ** 63n - 1n), BigInt64Array.of(1n)))]).toEqual([
      -(2n ** 63n),
    ]);
    const odd = Int32Array.of(0x7fffffff);
    expect([...reduce('prod', terms(odd, odd, odd))]).toEqual([0x7fffffff]);
    expect([...reduce('prod', terms(Uint32Array.of(0xffffffff), Uint32Array.of(0xfffffffd)))]).toEqual([3]);
  });

  it('compares without a sign where there is none', () => {
    const [small, large] = [BigUint64Array.of(1n), BigUint64Array.of(2n ** 64n - 1n)];
    expect([...reduce('max', terms(small, large))]).toEqual([2n ** 64n - 1n]);
    expect([...reduce('min', terms(Uint8Array.of(200), Uint8Array.of(3)))]).toEqual([3]);
  });

  it('sums halves without rounding in between', () => {
    const bfloat16 = (value: number) =>
      ({ data: Uint16Array.of(toBfloat16(value)), dtype: 'bfloat16' }) as const;
    // If each addition rounded to bfloat16, 256 + 1 would be 256 again each time.
    const sum = reduce('sum', terms(bfloat16(256), ...Array.from({ length: 256 }, () => bfloat16(1))));
    expect(fromBfloat16(Number(sum[0]))).toBe(512);
    const float16 = (value: number) =>
      ({ data: Uint16Array.of(toFloat16(value)), dtype: 'float16' }) as const;
    // The sum is infinite in float16, the average is not.
    expect([...reduce('avg', terms(float16(60_000), float16(60_000)))]).toEqual([toFloat16(60_000)]);
  });
});

describe('isReducible', () => {
  it('has fractions for floats, bits for integers, and only what keeps 0 and 1 for bools', () => {
    const on = (dtype: 'float16' | 'int8' | 'uint64' | 'bool') =>
      reduceOps.filter((op) => isReducible(op, dtype));
    expect(on('float16')).toEqual(['sum', 'avg', 'prod', 'min', 'max', 'premulSum']);
    expect(on('int8')).toEqual(['sum', 'prod', 'min', 'max', 'band', 'bor', 'bxor']);
    expect(on('uint64')).toEqual(on('int8'));
    expect(on('bool')).toEqual(['min', 'max', 'band', 'bor', 'bxor']);
    expect(() => isReducible('avg', 'int' as never)).toThrow(
      expect.objectContaining({
        code: 'ERR_COLL_INVALID',
        message: expect.stringContaining("isReducible: unknown dtype 'int'; expected one of float32,"),
      }),
    );
  });
});
