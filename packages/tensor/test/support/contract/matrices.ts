// Contract of matrix products, log-softmax and the negative log-likelihood.
import { describe, expect, test } from 'vitest';
import type { DType } from '../../../src/core/dtype.ts';
import {
  expectClose,
  flags,
  logSoftmax64,
  noise,
  product64,
  rowsOf,
  tolerances,
  transposed,
} from '../kernels-oracle.ts';
import { valuesOf, type Workbench, walked } from './workbench.ts';

const wide: DType[] = ['float32', 'float64'];

export function matrixContract(bench: Workbench): void {
  describe('matmul', () => {
    const check = (m: number, n: number, k: number, dtype: DType = 'float32'): void => {
      const [left, right, start] = [noise(m * k, 10), noise(k * n, 11), noise(m * n, 12)];
      for (const [transA, transB, accumulate] of flags) {
        const a = bench.put(dtype, transA ? transposed(left, m, k) : left);
        const b = bench.put(dtype, transB ? transposed(right, k, n) : right);
        const out = bench.put(dtype, accumulate ? start : Array(m * n).fill(NaN));
        const steps = { aStep: transA ? m : k, bStep: transB ? k : n };
        const [o, x, y] = [out, a, b].map((operand) => walked(operand, []));
        bench.kernels.matmul([], o!, x!, y!, { m, n, k, ...steps, transA, transB, accumulate });
        const want = product64(left, right, m, n, k);
        expectClose(
          valuesOf(out),
          want.map((value, i) => value + (accumulate ? start[i]! : 0)),
          (tolerances[dtype] / 3) * Math.max(4, k),
        );
      }
    };

    test('all transposes, with and without accumulate, all small odd sizes', () => {
      for (const m of [1, 3, 17, 33]) {
        for (const n of [1, 3, 17, 33]) for (const k of [1, 3, 17, 65]) check(m, n, k);
      }
    });

    test.each([
      [65, 65, 65],
      [200, 200, 200],
      [200, 1, 65],
      [1, 200, 65],
      [1, 1, 1000],
      [6, 16, 300],
      [7, 129, 5],
      [129, 7, 257],
      [32, 10, 512],
      [10, 512, 32],
      [300, 20, 3],
    ])('%i × %i × %i in all transposes', (m, n, k) => {
      check(m, n, k);
    });

    test('float64', () => {
      check(7, 9, 11, 'float64');
      check(33, 65, 40, 'float64');
    });

    test('batches, stretched and strided, of matrices whose rows lie apart', () => {
      const [m, n, k] = [5, 7, 6];
      const [pool, factors] = [noise(3 * 8 * 10), noise(2 * 9 * 7, 2)];
      const [a, b, out] = [bench.floats(pool), bench.floats(factors), bench.dirty(2 * 3 * m * n)];
      // A: every second of three matrices [5, 6] with rows 10 apart, one batch for both; B: [6, 7] dense, one
      // per batch.
      const sizes = { m, n, k, aStep: 10, bStep: 7, transA: false, transB: false, accumulate: false };
      bench.kernels.matmul(
        [2, 3],
        walked(out, [3 * m * n, m * n]),
        walked(a, [0, 80], 12),
        walked(b, [63, 0], 2),
        sizes,
      );
      const want = [0, 1].flatMap((i) =>
        [0, 1, 2].flatMap((j) => {
          const left = Array.from(
            { length: m * k },
            (_, e) => pool[12 + 80 * j + Math.floor(e / k) * 10 + (e % k)]!,
          );
          return product64(left, factors.slice(2 + 63 * i, 2 + 63 * i + k * n), m, n, k);
        }),
      );
      expectClose(valuesOf(out), want, 1e-5);
    });

    test('NaN and infinity in a row reach exactly that row', () => {
      const [m, n, k] = [9, 20, 33];
      const left = noise(m * k);
      left[4 * k + 7] = NaN;
      left[6 * k + 1] = Infinity;
      const [a, b, out] = [
        bench.floats(left),
        bench.floats(noise(k * n, 2).map(Math.abs)),
        bench.dirty(m * n),
      ];
      const sizes = { m, n, k, aStep: k, bStep: n, transA: false, transB: false, accumulate: false };
      bench.kernels.matmul([], walked(out, []), walked(a, []), walked(b, []), sizes);
      for (const [i, value] of valuesOf(out).entries()) {
        const row = Math.floor(i / n);
        expect(Number.isNaN(value)).toBe(row === 4);
        expect(Number.isFinite(value)).toBe(row !== 4 && row !== 6);
      }
    });
  });

  describe('logSoftmax and nll', () => {
    const shapes: [rows: number, cols: number][] = [
      [0, 5],
      [1, 1],
      [3, 2],
      [32, 10],
      [5, 33],
      [7, 1000],
    ];

    test.each(wide)('logSoftmax of %s and its gradient', (dtype) => {
      for (const [rows, cols] of shapes) {
        const count = rows * cols;
        const values = noise(count).map((x) => Math.fround(x * 20));
        const grads = noise(count, 3);
        const [a, grad] = [bench.put(dtype, values), bench.put(dtype, grads)];
        const [out, gradIn] = [bench.dirty(count, dtype), bench.dirty(count, dtype)];
        bench.kernels.logSoftmax({ out, a }, { rows, cols });
        const want = rowsOf(values, cols).flatMap(logSoftmax64);
        expectClose(valuesOf(out), want, tolerances[dtype]);
        bench.kernels.logSoftmaxGrad({ gradIn, gradOut: grad, out }, { rows, cols });
        const wantGrad = rowsOf(grads, cols).flatMap((row, r) => {
          const sum = row.reduce((x, y) => x + y, 0);
          return row.map((g, c) => g - Math.exp(want[r * cols + c]!) * sum);
        });
        expectClose(valuesOf(gradIn), wantGrad, 4 * tolerances[dtype]);
      }
    });

    test('logSoftmax stays finite for large inputs, takes −∞ as impossible and keeps NaN in its row', () => {
      const rows = [
        [1000, 1001, 999],
        [-3e38, 0, 0],
        [-Infinity, 2, 2],
        [NaN, 1, 2],
        [1, 2, 3],
      ];
      const want = rows.flatMap((row) => (row.includes(NaN) ? [NaN, NaN, NaN] : logSoftmax64(row)));
      for (const dtype of wide) {
        const [a, out] = [bench.put(dtype, rows.flat()), bench.dirty(15, dtype)];
        bench.kernels.logSoftmax({ out, a }, { rows: 5, cols: 3 });
        expectClose(valuesOf(out), want);
      }
    });

    test.each(['int32', 'int64'] as DType[])('nll and its gradient with %s labels', (label) => {
      for (const dtype of wide) {
        for (const [rows, cols] of shapes) {
          const logProbs = noise(rows * cols);
          const labels = Array.from({ length: rows }, (_, r) => (r * 7 + cols - 1) % cols);
          const gradLosses = noise(rows, 5);
          const [a, wanted, losses] = [
            bench.put(dtype, logProbs),
            bench.put(label, labels),
            bench.dirty(rows, dtype),
          ];
          bench.kernels.nll({ losses, logProbs: a, labels: wanted }, { rows, cols });
          expect(valuesOf(losses)).toEqual(labels.map((at, r) => -logProbs[r * cols + at]!));
          const [grad, gradIn] = [bench.put(dtype, gradLosses), bench.dirty(rows * cols, dtype)];
          bench.kernels.nllGrad({ gradIn, gradLosses: grad, labels: wanted }, { rows, cols });
          const row = (i: number): number => Math.floor(i / cols);
          const want = logProbs.map((_, i) => (i % cols === labels[row(i)] ? -gradLosses[row(i)]! : 0));
          expect(valuesOf(gradIn)).toEqual(want);
        }
      }
    });
  });
}
