import { describe, expect, it } from 'vitest';
import { bfloat16Bits, bfloat16Value, float16Bits, float16Value } from '../../src/half.ts';
import { type ExactOp, exactDTypes, exactInput, expectedReduce, toNumbers } from '../../src/index.ts';

const count = 500;

describe.each(exactDTypes)('exact input of %s', (dtype) => {
  it('is the same for the same arguments and differs between ranks and seeds', () => {
    const input = toNumbers(exactInput(0, count, dtype));
    expect(toNumbers(exactInput(0, count, dtype))).toEqual(input);
    expect(toNumbers(exactInput(1, count, dtype))).not.toEqual(input);
    expect(toNumbers(exactInput(0, count, dtype, 7))).not.toEqual(input);
    expect(new Set(input).size).toBeGreaterThan(1);
  });

  it('sums exactly over 64 ranks in any order, also of partial sums', () => {
    const inputs = Array.from({ length: 64 }, (_, rank) => exactInput(rank, count, dtype));
    const expected = expectedReduce('sum', 64, count, dtype);
    const numbers = inputs.map(toNumbers);
    const backwards = numbers.reduceRight((sums, input) => sums.map((sum, index) => sum + input[index]!));
    expect(expected).toEqual(dtype === 'bool' ? backwards.map((sum) => Math.min(sum, 1)) : backwards);
    expect(new Set(expected).size).toBeGreaterThan(dtype === 'bool' ? 0 : 5);
  });

  it('reduces two ranks with every op that the type has', () => {
    const [a, b] = [toNumbers(exactInput(0, count, dtype)), toNumbers(exactInput(1, count, dtype))];
    const elementwise: Partial<Record<ExactOp, (x: number, y: number) => number>> = {
      prod: (x, y) => x * y + 0,
      min: Math.min,
      max: Math.max,
      ...(dtype.includes('float')
        ? { avg: (x, y) => (x + y) / 2 }
        : { band: (x, y) => x & y, bor: (x, y) => x | y, bxor: (x, y) => x ^ y }),
    };
    for (const [op, reduce] of Object.entries(elementwise)) {
      const expected = a.map((x, index) => reduce(x, b[index]!));
      expect(expectedReduce(op as ExactOp, 2, count, dtype), op).toEqual(expected);
    }
  });
});

it('refuses to predict what is not exact', () => {
  expect(() => expectedReduce('avg', 3, count, 'float32')).toThrow(/not exact in float32/);
  expect(() => expectedReduce('avg', 2, count, 'int32')).toThrow(RangeError);
  expect(() => expectedReduce('sum', 400, count, 'int8')).not.toThrow();
  expect(() => expectedReduce('prod', 64, 2_000, 'uint8')).not.toThrow();
  expect(() => expectedReduce('band', 2, count, 'float32')).toThrow(/not defined/);
  expect(() => expectedReduce('avg', 2, count, 'bool')).toThrow(/not defined/);
});

it('knows the bits of 16-bit floats', () => {
  const float16 = [
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65_504],
    [0x0400, 2 ** -14],
    [0x0001, 2 ** -24],
    [0x7c00, Number.POSITIVE_INFINITY],
  ];
  for (const [bits, value] of float16) expect(float16Value(bits!)).toBe(value);
  expect(float16Value(0x7e00)).toBeNaN();
  expect([bfloat16Value(0x3f80), bfloat16Value(0xc040), bfloat16Value(0x7f80)]).toEqual([
    1,
    -3,
    Number.POSITIVE_INFINITY,
  ]);
  for (let value = -2048; value <= 2048; value++) expect(float16Value(float16Bits(value))).toBe(value);
  for (let value = -256; value <= 256; value++) expect(bfloat16Value(bfloat16Bits(value))).toBe(value);
  expect(() => float16Bits(2049)).toThrow(RangeError);
  expect(() => float16Bits(131_072)).toThrow(RangeError);
  expect(() => bfloat16Bits(257)).toThrow(RangeError);
});
