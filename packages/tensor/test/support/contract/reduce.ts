// Contract of reductions, and of the positions of extremes.
import { describe, expect, test } from 'vitest';
import type { ReduceOp } from '../../../src/backends/declarations/names.ts';
import { isFloat } from '../../../src/core/dtype.ts';
import {
  columns,
  dtypes,
  expectClose,
  gather,
  integers,
  noise,
  product,
  stored,
  tolerances,
} from '../kernels-oracle.ts';
import { valuesOf, type Workbench, walked } from './workbench.ts';

/** Reductions over the middle dimension of [outer, size, inner]. */
const shapes: [outer: number, size: number, inner: number][] = [
  [1, 1, 1],
  [1, 1000, 1],
  [1, 4099, 1],
  [1, 32, 512],
  [2, 9, 1200],
  [32, 512, 1],
  [3, 17, 5],
  [17, 3, 33],
  [5, 65, 9],
  [2, 0, 3],
  [0, 4, 3],
  [4, 3, 0],
];

const totals: Record<ReduceOp, (values: readonly number[]) => number> = {
  sum: (values) => values.reduce((x, y) => x + y, 0),
  mean: (values) => values.reduce((x, y) => x + y, 0) / values.length,
  prod: (values) => values.reduce((x, y) => x * y, 1),
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
};

export function reduceContract(bench: Workbench): void {
  describe('reduce', () => {
    test.each(dtypes)('over the middle of %s', (dtype) => {
      for (const [outer, size, inner] of shapes) {
        const count = outer * size * inner;
        const values = stored(dtype, isFloat(dtype) ? noise(count) : integers(count));
        const a = bench.put(dtype, values);
        for (const op of ['sum', 'mean', 'max', 'min'] as const) {
          if (op === 'mean' && !isFloat(dtype)) continue;
          if (op !== 'sum' && size === 0) continue;
          const to = op === 'sum' && !isFloat(dtype) ? 'int64' : dtype;
          const out = bench.dirty(outer * inner, to);
          bench.kernels.reduce(op, [outer, size, inner], walked(out, [inner, 0, 1]), a);
          const want = columns(values, outer, size, inner).map(totals[op]);
          expectClose(valuesOf(out), want, 3 * tolerances[to]);
        }
      }
    });

    test('over any dimensions of any layout', () => {
      const a = bench.floats(noise(360));
      const layouts: [shape: number[], from: number[], to: number[]][] = [
        [
          [3, 4, 5, 6],
          [120, 30, 6, 1],
          [6, 0, 0, 1],
        ],
        [
          [3, 4, 5, 6],
          [120, 30, 6, 1],
          [0, 5, 1, 0],
        ],
        [
          [3, 4, 5, 6],
          [1, 3, 12, 60],
          [30, 0, 6, 1],
        ],
        [
          [3, 4, 5, 6],
          [1, 3, 12, 60],
          [0, 30, 6, 1],
        ],
        [
          [6, 5, 4, 3],
          [1, 6, 30, 120],
          [0, 0, 0, 0],
        ],
        [
          [4, 7, 9],
          [0, 9, 1],
          [9, 0, 1],
        ],
        [
          [4, 9, 7],
          [81, 9, 1],
          [1, 0, 0],
        ],
      ];
      for (const [shape, from, to] of layouts) {
        const values = gather(valuesOf(a), shape, from);
        const at = gather([...Array(360).keys()], shape, to);
        const kept = product(shape.filter((_, d) => to[d] !== 0));
        for (const op of ['sum', 'max', 'min', 'prod'] as const) {
          const out = bench.dirty(kept);
          bench.kernels.reduce(op, shape, walked(out, to), walked(a, from));
          const want = Array.from({ length: kept }, (_, i) =>
            totals[op](values.filter((_, j) => at[j] === i)),
          );
          expectClose(valuesOf(out), want, 1e-5);
        }
      }
    });

    test('of nothing gives 0, 1, NaN, −∞ or ∞', () => {
      const nothing = bench.floats([]);
      const results = (['sum', 'prod', 'mean', 'max', 'min'] as const).map((op) => {
        const out = bench.dirty(2);
        bench.kernels.reduce(op, [2, 0], walked(out, [1, 0]), nothing);
        return valuesOf(out);
      });
      expect(results).toEqual([0, 1, NaN, -Infinity, Infinity].map((value) => [value, value]));
    });

    test('sums and products of integers wrap around in int64', () => {
      const a = bench.putArray('int64', BigInt64Array.of(2n ** 62n, 2n ** 62n, 5n));
      const out = bench.dirty(1, 'int64');
      bench.kernels.reduce('sum', [3], walked(out, [0]), a);
      expect(out.memory.host[0]).toBe(BigInt.asIntN(64, 2n ** 63n + 5n));
      bench.kernels.reduce('prod', [3], walked(out, [0]), a);
      expect(out.memory.host[0]).toBe(0n);
    });

    test('a long float32 sum keeps six digits', () => {
      const count = 1 << 20;
      const [a, out] = [bench.dirty(count), bench.dirty(1)];
      bench.kernels.copy([count], a, 0.1);
      bench.kernels.reduce('sum', [count], walked(out, [0]), a);
      expect(valuesOf(out)[0]! / (Math.fround(0.1) * count)).toBeCloseTo(1, 6);
    });

    test('propagates NaN wherever it stands', () => {
      for (const [outer, size, inner] of [
        [1, 33, 1],
        [1, 33, 17],
        [3, 9, 1],
      ] as const) {
        for (let s = 0; s < size; s++) {
          const values = noise(outer * size * inner);
          for (let o = 0; o < outer; o++) values[(o * size + s) * inner] = NaN;
          const a = bench.floats(values);
          for (const op of ['sum', 'mean', 'prod', 'max', 'min'] as const) {
            const out = bench.dirty(outer * inner);
            bench.kernels.reduce(op, [outer, size, inner], walked(out, [inner, 0, 1]), a);
            const isNaNs = valuesOf(out).map(Number.isNaN);
            expect(isNaNs).toEqual(isNaNs.map((_, i) => i % inner === 0));
          }
        }
      }
    });
  });

  describe('argReduce', () => {
    test.each(dtypes)('finds the first extreme of %s', (dtype) => {
      for (const [outer, size, inner] of shapes.filter(([, size]) => size > 0)) {
        const values = stored(
          dtype,
          integers(outer * size * inner, 6).map((x) => x % 7),
        );
        const a = bench.put(dtype, values);
        for (const op of ['max', 'min'] as const) {
          const out = bench.dirty(outer * inner, 'int64');
          bench.kernels.argReduce(op, [outer, size, inner], walked(out, [inner, 0, 1]), a);
          const want = columns(values, outer, size, inner).map((column) =>
            column.indexOf(totals[op](column)),
          );
          expect(valuesOf(out)).toEqual(want);
        }
      }
    });

    test('takes NaN as the most extreme, and the first of several', () => {
      const rows = [
        [1, NaN, 3],
        [NaN, 9, NaN],
        [-Infinity, -Infinity, -Infinity],
        [Infinity, 1, NaN],
      ];
      const [a, out] = [bench.floats(rows.flat()), bench.dirty(4, 'int64')];
      for (const op of ['max', 'min'] as const) {
        bench.kernels.argReduce(op, [4, 3], walked(out, [1, 0]), a);
        expect(valuesOf(out)).toEqual([1, 0, 0, 2]);
      }
    });
  });
}
