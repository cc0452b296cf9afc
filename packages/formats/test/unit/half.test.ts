import { describe, expect, test } from 'vitest';
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from '../../src/index.ts';

describe('float16 and bfloat16', () => {
  test('known patterns in both directions', () => {
    const halves: [number, number][] = [
      [0, 0],
      [1, 0x3c00],
      [-2, 0xc000],
      [65504, 0x7bff],
      [2 ** -24, 1],
      [2 ** -14, 0x0400],
      [1 / 3, 0x3555],
      [Infinity, 0x7c00],
    ];
    for (const [value, bits] of halves) expect(toFloat16(value)).toBe(bits);
    for (const [value, bits] of halves) expect(fromFloat16(bits)).toBeCloseTo(value, 3);
    expect([1, -2, 3.140625, Infinity].map(toBfloat16)).toEqual([0x3f80, 0xc000, 0x4049, 0x7f80]);
    expect(fromBfloat16(0x4049)).toBe(3.140625);
    expect([toFloat16(NaN), toBfloat16(NaN)].map((bits) => bits & 0x7fff)).toEqual([0x7e00, 0x7fc0]);
  });

  test('every pattern survives the way to a number and back', () => {
    for (let bits = 0; bits < 0x10000; bits++) {
      if (!Number.isNaN(fromFloat16(bits))) expect(toFloat16(fromFloat16(bits))).toBe(bits);
      if (!Number.isNaN(fromBfloat16(bits))) expect(toBfloat16(fromBfloat16(bits))).toBe(bits);
    }
  });

  test('round to nearest, halves to the even pattern, and overflow to infinity', () => {
    expect([1 + 2 ** -11, 1 + 3 * 2 ** -11].map(toFloat16)).toEqual([0x3c00, 0x3c02]);
    expect([1 + 2 ** -8, 1 + 3 * 2 ** -8].map(toBfloat16)).toEqual([0x3f80, 0x3f82]);
    expect([65519, 65520].map(toFloat16)).toEqual([0x7bff, 0x7c00]);
    expect([2 ** -25, 3 * 2 ** -25].map(toFloat16)).toEqual([0, 2]);
  });
});
