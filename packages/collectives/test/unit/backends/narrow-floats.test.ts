import { describe, expect, it } from 'vitest';
import {
  fromBfloat16,
  narrowFloats,
  toBfloat16,
  toFloat16,
} from '../../../src/backends/arithmetic/narrow-floats.ts';

describe.each([
  ['float16', 16],
  ['bfloat16', 16],
  ['float8_e4m3fn', 8],
  ['float8_e5m2', 8],
] as const)('%s', (dtype, width) => {
  const { from, to } = narrowFloats[dtype];
  const all = Array.from({ length: 2 ** width }, (_, bits) => bits);
  // Conversions to 8-bit floats saturate and never become infinite.
  const isKept = (value: number) => width === 16 || Number.isFinite(value);

  it('keeps every one of its values', () => {
    const wrong = all.filter((bits) => {
      if (!isKept(from(bits)) && !Number.isNaN(from(bits))) return false;
      const value = from(bits);
      return Number.isNaN(value) ? !Number.isNaN(from(to(value))) : to(value) !== bits;
    });
    expect(wrong).toEqual([]);
  });

  it('rounds what lies between two neighbours to the nearer one, ties to the even one', () => {
    const wrong: number[] = [];
    for (const bits of all) {
      const [low, high] = [from(bits), from(bits + 1)];
      if (!Number.isFinite(low) || !Number.isFinite(high) || bits === 2 ** (width - 1) - 1) continue;
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

describe('float8_e4m3fn', () => {
  it('has the known bit patterns, and saturates', () => {
    const known = [
      [1, 0x38],
      [-2, 0xc0],
      [448, 0x7e],
      [464, 0x7e],
      [1e9, 0x7e],
      [Number.NEGATIVE_INFINITY, 0xfe],
      [-0, 0x80],
      [2 ** -9, 0x01],
      [2 ** -10, 0x00],
      [2 ** -6, 0x08],
      [1 / 3, 0x2b],
    ] as const;
    const { from, to } = narrowFloats.float8_e4m3fn;
    expect(known.map(([value]) => to(value))).toEqual(known.map(([, bits]) => bits));
    expect([0x7f, 0xff].map(from)).toEqual([Number.NaN, Number.NaN]);
    expect(to(Number.NaN)).toBe(0x7f);
  });
});

describe('float8_e5m2', () => {
  it('has the known bit patterns, and saturates', () => {
    const known = [
      [1, 0x3c],
      [-2, 0xc0],
      [57344, 0x7b],
      [61440, 0x7b],
      [Number.POSITIVE_INFINITY, 0x7b],
      [2 ** -16, 0x01],
      [2 ** -17, 0x00],
      [2 ** -14, 0x04],
      [1 / 3, 0x35],
    ] as const;
    const { from, to } = narrowFloats.float8_e5m2;
    expect(known.map(([value]) => to(value))).toEqual(known.map(([, bits]) => bits));
    expect([0x7c, 0xfc].map(from)).toEqual([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
    expect([0x7d, 0x7e, 0xff].map(from)).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    expect(to(Number.NaN)).toBe(0x7f);
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
