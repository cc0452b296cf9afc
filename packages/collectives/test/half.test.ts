import { describe, expect, it } from 'vitest';
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '../src/half.ts';

const halves = Array.from({ length: 0x10000 }, (_, bits) => bits);

describe.each([
  ['float16', fromFloat16, toFloat16],
  ['bfloat16', fromBfloat16, toBfloat16],
] as const)('%s', (_, from, to) => {
  it('keeps every one of its 65536 values', () => {
    const wrong = halves.filter((bits) => {
      const value = from(bits);
      return Number.isNaN(value) ? !Number.isNaN(from(to(value))) : to(value) !== bits;
    });
    expect(wrong).toEqual([]);
  });

  it('rounds what lies between two neighbours to the nearer one, ties to the even one', () => {
    const wrong: number[] = [];
    for (const bits of halves) {
      const [low, high] = [from(bits), from(bits + 1)];
      if (!Number.isFinite(low) || !Number.isFinite(high) || bits === 0x7fff) continue;
      const middle = low + (high - low) / 2;
      const nudge = (high - low) / 8;
      const even = bits % 2 === 0 ? bits : bits + 1;
      if (to(middle) !== even || to(middle - nudge) !== bits || to(middle + nudge) !== bits + 1)
        wrong.push(bits);
    }
    expect(wrong).toEqual([]);
  });
});

describe('float16', () => {
  it('has the known bit patterns', () => {
    const known = [
      [1, 0x3c00],
      [-2, 0xc000],
      [65504, 0x7bff],
      [65519.99, 0x7bff],
      [65520, 0x7c00],
      [1e9, 0x7c00],
      [Number.NEGATIVE_INFINITY, 0xfc00],
      [-0, 0x8000],
      [2 ** -24, 0x0001],
      [2 ** -25, 0x0000],
      [2 ** -14, 0x0400],
      [1 / 3, 0x3555],
    ] as const;
    expect(known.map(([value]) => toFloat16(value))).toEqual(known.map(([, bits]) => bits));
  });
});

describe('bfloat16', () => {
  it('has the known bit patterns', () => {
    const known = [
      [1, 0x3f80],
      [-2, 0xc000],
      [3.4e38, 0x7f80],
      [Math.PI, 0x4049],
      [Number.POSITIVE_INFINITY, 0x7f80],
      [-0, 0x8000],
    ] as const;
    expect(known.map(([value]) => toBfloat16(value))).toEqual(known.map(([, bits]) => bits));
    expect(fromBfloat16(toBfloat16(Number.NaN))).toBeNaN();
  });
});
