// Contract of lookups by index, cumulative sums, sorting and triangles of matrices.
import { describe, expect, test } from 'vitest';
import { type ScatterOp, scatterOps } from '../../../src/backends/declarations/names.ts';
import { isFloat } from '../../../src/core/dtype.ts';
import {
  columns,
  dtypes,
  expectClose,
  integers,
  noise,
  rowsOf,
  stored,
  tolerances,
} from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const [outer, size, inner, count] = [3, 7, 5, 4];

const combinations: Readonly<Record<ScatterOp, (own: number, given: number) => number>> = {
  add: (own, given) => own + given,
  replace: (_, given) => given,
  mul: (own, given) => own * given,
  min: Math.min,
  max: Math.max,
};

export function orderContract(bench: Workbench): void {
  describe('lookup and scatter', () => {
    test.each(dtypes)('of %s, one index for a slice or one for each element', (dtype) => {
      for (const perElement of [false, true]) {
        const places = Array.from(
          { length: perElement ? outer * count * inner : count },
          (_, i) => (i * 5 + 1) % size,
        );
        const values = stored(dtype, integers(outer * size * inner));
        const [a, index] = [bench.put(dtype, values), bench.put('int64', places)];
        const sizes = { outer, count, size, inner, perElement };
        const out = bench.dirty(outer * count * inner, dtype);
        bench.kernels.lookup({ out, a, index }, sizes);
        const sources = Array.from({ length: outer * count * inner }, (_, at) => {
          const [o, j, i] = [Math.floor(at / inner / count), Math.floor(at / inner) % count, at % inner];
          return (o * size + places[perElement ? at : j]!) * inner + i;
        });
        expect(valuesOf(out)).toEqual(sources.map((at) => values[at]!));

        const added = stored(
          dtype,
          integers(sources.length, 3).map((x) => x % 10),
        );
        for (const op of scatterOps) {
          const target = bench.put(dtype, values);
          bench.kernels.scatter({ out: target, a: bench.put(dtype, added), index }, { ...sizes, op });
          const want = [...values];
          for (const [i, at] of sources.entries())
            want[at] = stored(dtype, [combinations[op](want[at]!, added[i]!)])[0]!;
          expect(valuesOf(target)).toEqual(want);
        }
      }
    });

    test('extremes keep NaN, wherever it comes', () => {
      const sizes = { outer: 1, count: 4, size: 2, inner: 1, perElement: false };
      for (const op of ['min', 'max'] as const) {
        const out = bench.put('float32', [1, NaN]);
        const a = bench.put('float32', [2, NaN, 3, 4]);
        bench.kernels.scatter({ out, a, index: bench.put('int64', [0, 0, 0, 1]) }, { ...sizes, op });
        expect(valuesOf(out)).toEqual([NaN, NaN]);
      }
    });
  });

  describe('cumsum', () => {
    test.each(dtypes)('of %s along the middle, forwards and backwards', (dtype) => {
      for (const [outer, size, inner] of [
        [3, 7, 5],
        [2, 1200, 1],
        [1, 0, 4],
      ] as const) {
        const values = stored(
          dtype,
          isFloat(dtype) ? noise(outer * size * inner) : integers(outer * size * inner),
        );
        for (const reverse of [false, true]) {
          const [a, out] = [bench.put(dtype, values), bench.dirty(values.length, dtype)];
          bench.kernels.cumsum({ out, a }, { outer, size, inner, reverse });
          const want = [...values];
          for (const [at, column] of columns(values, outer, size, inner).entries()) {
            for (let s = 0; s < size; s++) {
              const part = reverse ? column.slice(s) : column.slice(0, s + 1);
              const [o, i] = [Math.floor(at / inner), at % inner];
              want[(o * size + s) * inner + i] = part.reduce((x, y) => x + y, 0);
            }
          }
          expectClose(valuesOf(out), isFloat(dtype) ? want : stored(dtype, want), 2 * tolerances[dtype]);
        }
      }
    });
  });

  describe('sort', () => {
    test.each(dtypes)('rows of %s, stable, whole or only the first', (dtype) => {
      const [rows, cols] = [4, 50];
      const values = stored(
        dtype,
        integers(rows * cols).map((x) => x % 9),
      );
      for (const descending of [false, true]) {
        for (const count of [cols, 3, 0]) {
          const [a, out, indices] = [
            bench.put(dtype, values),
            bench.dirty(rows * count, dtype),
            bench.dirty(rows * count, 'int64'),
          ];
          bench.kernels.sort({ values: out, indices, a }, { rows, cols, count, descending });
          const want = rowsOf(values, cols).flatMap((row) =>
            row
              .map((value, at) => ({ value, at }))
              .sort((x, y) => (descending ? y.value - x.value : x.value - y.value) || x.at - y.at)
              .slice(0, count),
          );
          expect(valuesOf(out)).toEqual(want.map(({ value }) => value));
          expect(valuesOf(indices)).toEqual(want.map(({ at }) => at));
        }
      }
    });

    test('takes NaN as the largest', () => {
      const a = bench.floats([3, NaN, -Infinity, NaN, Infinity]);
      const [out, indices] = [bench.dirty(5), bench.dirty(5, 'int64')];
      bench.kernels.sort({ values: out, indices, a }, { rows: 1, cols: 5, count: 5, descending: false });
      expect(valuesOf(indices)).toEqual([2, 0, 4, 1, 3]);
      bench.kernels.sort({ values: out, indices, a }, { rows: 1, cols: 5, count: 5, descending: true });
      expect(valuesOf(indices)).toEqual([1, 3, 4, 0, 2]);
    });
  });

  describe('triangle', () => {
    test.each(dtypes)('of %s on either side of any diagonal', (dtype) => {
      const [batch, rows, cols] = [2, 4, 6];
      const values = stored(dtype, integers(batch * rows * cols));
      for (const upper of [false, true]) {
        for (const diagonal of [-9, -2, 0, 1, 9]) {
          const out = bench.dirty(values.length, dtype);
          bench.kernels.triangle(
            { out, a: bench.put(dtype, values) },
            { batch, rows, cols, diagonal, upper },
          );
          const want = values.map((value, i) => {
            const distance = (i % cols) - (Math.floor(i / cols) % rows);
            return (upper ? distance >= diagonal : distance <= diagonal) ? value : 0;
          });
          expect(valuesOf(out)).toEqual(want);
        }
      }
    });
  });
}
