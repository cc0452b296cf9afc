// Contract of memory, and of copy, which also converts dtypes.
import { describe, expect, test } from 'vitest';
import { type DType, isFloat } from '../../../src/core/dtype.ts';
import {
  dtypes,
  gather,
  hostOf,
  integers,
  list,
  noise,
  numbers,
  product,
  sizes,
  stored,
} from '../kernels-oracle.ts';
import { valuesOf, type Workbench, walked } from './workbench.ts';

export function memoryContract(bench: Workbench): void {
  describe('memory', () => {
    test.each(dtypes)('alloc gives %s memory that JavaScript can read and write', (dtype) => {
      for (const count of sizes) {
        const memory = bench.kernels.alloc(dtype, count, bench.device);
        expect(memory).toMatchObject({ dtype, count });
        expect(memory.host.constructor).toBe(hostOf(dtype, []).constructor);
        expect(memory.host.length).toBe(count);
        bench.kernels.copy([count], { memory, offset: 0, strides: null }, 1);
        expect(numbers(memory)).toEqual(Array(count).fill(1));
        bench.kernels.free(memory);
      }
    });

    test('pieces of memory that are alive do not share elements', () => {
      const all = Array.from({ length: 50 }, (_, i) => bench.floats(Array(i).fill(i)));
      for (const [i, operand] of all.entries()) expect(valuesOf(operand)).toEqual(Array(i).fill(i));
    });

    test.each(dtypes)('write and read move any part of %s memory', (dtype) => {
      const a = bench.put(dtype, Array(5000).fill(1));
      bench.kernels.write(a.memory, 4000, hostOf(dtype, [0, 1, 0]));
      const part = hostOf(dtype, Array(5).fill(9));
      bench.kernels.read(a.memory, 3999, part);
      expect(numbers({ dtype, host: part })).toEqual([1, 0, 1, 0, 1]);
      bench.kernels.write(a.memory, 5000, hostOf(dtype, []));
    });

    test.skipIf(bench.device !== 'cpu')(
      'adopt computes in the memory of the array that was given, also in the middle of a buffer',
      () => {
        const whole = Float32Array.from(noise(32));
        const want = Array.from(whole, (x, i) => (i >= 3 && i < 20 ? -x : x));
        const memory = bench.kernels.adopt('float32', whole.subarray(3, 20));
        expect(memory).toMatchObject({ dtype: 'float32', count: 17 });
        const operand = { memory, offset: 0, strides: null };
        bench.kernels.map('neg', 'float32', [17], operand, operand);
        bench.kernels.free(memory);
        expect(Array.from(whole)).toEqual(want);
      },
    );

    test.skipIf(bench.device !== 'cpu').each(dtypes)('adopt takes an array of %s', (dtype) => {
      const memory = bench.kernels.adopt(dtype, hostOf(dtype, [0, 1]));
      expect(memory).toMatchObject({ dtype, count: 2 });
      bench.kernels.free(memory);
    });
  });

  describe('copy', () => {
    test.each(dtypes)(
      'converts %s to every dtype: to integers towards zero, wrapping around; to bool, all but 0 is true',
      (from) => {
        for (const to of dtypes) {
          for (const count of sizes) {
            const values = isFloat(from) ? noise(count).map((x) => x * 9) : integers(count);
            const [a, out] = [bench.put(from, values), bench.dirty(count, to)];
            bench.kernels.copy([count], out, a);
            const exact = valuesOf(a).map((x) => (isFloat(to) || to === 'bool' ? x : Math.trunc(x)));
            expect(valuesOf(out)).toEqual(stored(to, exact).map((x) => x + 0));
          }
        }
      },
    );

    test.each(dtypes)('writes a number to %s memory', (dtype) => {
      const out = bench.dirty(20, dtype);
      bench.kernels.copy([5], walked(out, [2], 3), 7.5);
      const [value] = stored(dtype, [isFloat(dtype) || dtype === 'bool' ? 7.5 : 7]);
      const [rest] = stored(dtype, [99]);
      expect(valuesOf(out)).toEqual(
        Array.from({ length: 20 }, (_, i) => (i >= 3 && i < 12 && i % 2 ? value : rest)),
      );
    });

    const layouts: [shape: number[], strides: number[], offset: number][] = [
      [[], [], 5],
      [[120], [1], 0],
      [[10, 12], [1, 10], 0],
      [[12, 10], [10, 1], 0],
      [[3, 40], [0, 1], 7],
      [[40, 3], [1, 0], 7],
      [[4, 5, 6], [1, 4, 20], 0],
      [[5, 4, 3, 2], [2, 10, 40, 1], 0],
      [[2, 3, 2, 2, 2], [60, 20, 10, 5, 0], 1],
      [[7, 1, 9], [9, 50, 1], 11],
      [[0, 4], [4, 1], 0],
      [[3, 0], [1, 3], 0],
    ];

    test.each(dtypes)('reads %s transposed, broadcast, sliced and empty', (dtype) => {
      const a = bench.put(dtype, integers(120));
      for (const [shape, strides, offset] of layouts) {
        const out = bench.dirty(product(shape), dtype);
        bench.kernels.copy(shape, out, walked(a, strides, offset));
        expect(list(out.memory.host)).toEqual(gather(list(a.memory.host), shape, strides, offset));
      }
    });

    test.each([
      ['float32', 'float32'],
      ['int64', 'int64'],
      ['uint8', 'float16'],
    ] as [DType, DType][])('writes %s into a transposed part of %s memory', (from, to) => {
      const values = integers(17 * 19).map(Math.abs);
      const [a, out] = [bench.put(from, values), bench.dirty(20 * 20, to)];
      bench.kernels.copy([17, 19], walked(out, [1, 20], 21), a);
      expect(gather(valuesOf(out), [17, 19], [1, 20], 21)).toEqual(valuesOf(a));
      expect(valuesOf(out).filter((x) => x === 99).length).toBeGreaterThanOrEqual(400 - 17 * 19);
    });
  });
}
