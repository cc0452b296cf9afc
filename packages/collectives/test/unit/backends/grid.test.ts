import { describe, expect, it } from 'vitest';
import { randomFloats } from '../../../contract/inputs.ts';
import { allocHost, elementsOf } from '../../../src/index.ts';
import {
  type Exponents,
  exponentDtype,
  type GridKernels,
  maxAddends,
  type SummableDType,
  summableDtypes,
  wordsOf,
} from '../../../src/reproducible/grid.ts';
import { nativeKernels } from '../../../src/reproducible/kernels.ts';
import { referenceKernels } from '../../../src/reproducible/reference.ts';
import { decode, encode, exactly, formats, nearest, onGrid, stepBits } from '../../support/oracle.ts';

/** Returns the sums of the columns of `rows`, added in parts. The rows hold numbers that the dtype can represent. */
function sumsOf(
  kernels: GridKernels,
  dtype: SummableDType,
  rows: readonly (readonly number[])[],
  times = 1,
  divisor = 1,
): number[] {
  const count = rows[0]!.length;
  const exponents = elementsOf(allocHost(count, exponentDtype(dtype))) as Exponents;
  const words = new BigInt64Array(wordsOf(dtype, count));
  const output = elementsOf(allocHost(count, dtype));
  const inputs = rows.map((row) => {
    const input = elementsOf(allocHost(count, dtype));
    for (const [i, value] of row.entries()) input[i] = encode[dtype](value);
    return input;
  });
  for (const input of inputs) kernels.raise(dtype, input, exponents);
  for (const input of inputs) kernels.add(dtype, input, exponents, words);
  for (const i of words.keys()) words[i] = words[i]! * BigInt(times);
  kernels.finish(dtype, words, exponents, rows.length * times, divisor, output);
  return Array.from(output, decode[dtype]);
}

const worthOf = (dtype: SummableDType, value: number) => decode[dtype](encode[dtype](value));

/** Makes rows of finite numbers of a dtype: of all exponents, of few, nearly cancelling, small, and zeros. */
function randomRows(dtype: SummableDType, rowCount: number, length: number, seed: number): number[][] {
  const count = Math.round(length);
  const random = randomFloats(seed);
  const { least, most, precision } = formats[dtype];
  const span = most - least + precision;
  const rows = Array.from({ length: rowCount }, () => new Array<number>(count));
  for (let i = 0; i < count; i++) {
    const center = least - precision + (span * (random() + 1)) / 2;
    const width = [span, 3, 40, 0, 12][i % 5]!;
    for (const [n, row] of rows.entries()) {
      const exponent = Math.round(center + (width * random()) / 2);
      const value = worthOf(dtype, random() * 2 ** (exponent >> 1) * 2 ** (exponent - (exponent >> 1)));
      row[i] = Number.isFinite(value) ? value : 0;
      if (i % 7 === 0 && n % 2 === 1) row[i] = -rows[n - 1]![i]! * (n % 4 === 1 ? 1 : 0.5);
      if (!Number.isFinite(row[i]!) || worthOf(dtype, row[i]!) !== row[i]) row[i] = 0;
    }
  }
  return rows;
}

const columnOf = (rows: readonly (readonly number[])[], i: number) => rows.map((row) => row[i]!);

describe.each([
  ['reference', referenceKernels],
  ['native', nativeKernels() as GridKernels],
] as const)('the %s kernels', (_, kernels) => {
  describe.each(summableDtypes)('of %s', (dtype) => {
    it.each([1, 2, 3, 8, 100])('round %i addends to their grid and the sum once', (rowCount) => {
      const rows = randomRows(dtype, rowCount, 40_000 / (rowCount + 20), rowCount);
      const sums = sumsOf(kernels, dtype, rows);
      const wrong = sums.flatMap((sum, i) => {
        const expected = onGrid(columnOf(rows, i), dtype);
        return Object.is(sum, expected) ? [] : [{ i, sum, expected, addends: columnOf(rows, i) }];
      });
      expect(wrong.slice(0, 3)).toEqual([]);
    });

    // An average is rounded twice: when it is divided in float64, and to the dtype. `again` is the ratio of the errors
    // of the two; 0 stands for a sum, which is rounded once.
    it.each([
      ['sum', 1, 0n],
      ['average', 16, dtype === 'float64' ? 2n : 2n ** 20n],
    ] as const)('err by half an ulp of the %s and half a step per addend at most', (_, divisor, again) => {
      const rows = randomRows(dtype, 16, 2000, 5);
      const wrong = sumsOf(kernels, dtype, rows, 1, divisor).flatMap<unknown>((result, i) => {
        const addends = columnOf(rows, i).map(exactly);
        const exact = addends.reduce((a, b) => a + b, 0n);
        const { value, ulp } = nearest(exact / BigInt(divisor), dtype);
        if (!Number.isFinite(value) || !Number.isFinite(result)) return Object.is(result, value) ? [] : [i];
        const largest = addends.map((x) => (x < 0n ? -x : x)).sort((a, b) => (a < b ? 1 : -1))[0]!;
        // Every float16 is a multiple of the steps of its grid.
        const lost = dtype === 'float16' ? 0n : (16n * largest) >> BigInt(stepBits(dtype) + 1);
        const error = exactly(result) * BigInt(divisor) - exact;
        const allowed = ((ulp + (again && ulp / again)) / 2n + 1n) * BigInt(divisor) + lost;
        return error <= allowed && -error <= allowed ? [] : [{ i, result }];
      });
      expect(wrong).toEqual([]);
    });

    it('hold 2^20 of the largest number', () => {
      const { precision, most } = formats[dtype];
      const largest = (2 - 2 ** (1 - precision)) * 2 ** most;
      const third = worthOf(dtype, largest / 3);
      const rows = [[largest, -largest, third]];
      expect(sumsOf(kernels, dtype, rows, maxAddends)).toEqual([Infinity, -Infinity, Infinity]);
      expect(sumsOf(kernels, dtype, rows, maxAddends, maxAddends)).toEqual([largest, -largest, third]);
    });

    it('treat infinities, NaN and zeros as additions do', () => {
      const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
      const cases: [addends: number[], sum: number][] = [
        [[inf, 1, inf], inf],
        [[-inf, 1, 2], -inf],
        [[inf, 1, -inf], nan],
        [[nan, 1, 2], nan],
        [[1, inf, nan], nan],
        [[-inf, nan, -inf], nan],
        [[0, 0, 0], 0],
        [[-0, -0, -0], -0],
        [[-0, 0, -0], 0],
        [[1, -0, -1], 0],
        [[-1, 0.5, 0.5], 0],
        [[-0, -0, 1], 1],
      ];
      const rows = [0, 1, 2].map((n) => cases.map(([addends]) => addends[n]!));
      expect(sumsOf(kernels, dtype, rows)).toEqual(cases.map(([, sum]) => sum));
    });
  });
});
