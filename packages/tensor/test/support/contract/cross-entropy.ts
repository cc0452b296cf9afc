// Contract of cross entropy with class labels, and of its gradient.
import { describe, expect, test } from 'vitest';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, logSoftmax64, noise, tolerances } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const types: DType[] = ['float32', 'float64'];
const shapes: [rows: number, cols: number][] = [
  [0, 5],
  [1, 1],
  [3, 2],
  [32, 10],
  [5, 33],
  [7, 1000],
];
const ignoreIndex = -7;

/** Returns the targets of a row: the smoothed label times the weights of the classes. A label below 0 is ignored. */
const targets = (label: number, weight: readonly number[], smoothing: number): number[] =>
  weight.map((w, c) => (label < 0 ? 0 : w * (smoothing / weight.length + (c === label ? 1 - smoothing : 0))));

export function crossEntropyContract(bench: Workbench): void {
  const operandsOf = (
    dtype: DType,
    label: DType,
    scores: readonly number[],
    labels: readonly number[],
    weight: readonly number[] | null,
  ) => ({
    scores: bench.put(dtype, scores),
    labels: bench.put(label, labels),
    weight: weight && bench.put(dtype, weight),
    kept: bench.dirty(2 * labels.length, dtype),
  });

  const check = (dtype: DType, label: DType, smoothing: number, isWeighted: boolean): void => {
    for (const [rows, cols] of shapes) {
      const scores = noise(rows * cols).map((x) => Math.fround(x * 20));
      const labels = Array.from({ length: rows }, (_, r) => (r % 5 === 2 ? ignoreIndex : (r * 7 + 1) % cols));
      const weight = Array.from({ length: cols }, (_, c) => (isWeighted ? ((c * 3) % 8) / 4 : 1));
      const sizes = { rows, cols, ignoreIndex, smoothing };
      const operands = operandsOf(dtype, label, scores, labels, isWeighted ? weight : null);
      const logProbs = labels.map((_, r) => logSoftmax64(scores.slice(r * cols, (r + 1) * cols)));
      const wanted = labels.map((at) => targets(at, weight, smoothing));

      const [losses, counts] = [bench.dirty(rows, dtype), bench.dirty(rows, dtype)];
      bench.kernels.crossEntropy({ ...operands, losses, counts }, sizes);
      const total = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);
      const want = wanted.map((row, r) => -total(row.map((t, c) => (t === 0 ? 0 : t * logProbs[r]![c]!))));
      expectClose(valuesOf(losses), want, 8 * tolerances[dtype]);
      expectClose(
        valuesOf(counts),
        labels.map((at) => (at < 0 ? 0 : weight[at]!)),
      );

      const g = noise(rows, 5);
      const gradient = (scale: (r: number) => number): number[] =>
        wanted.flatMap((row, r) => {
          const all = total(row);
          return row.map((t, c) => scale(r) * (all * Math.exp(logProbs[r]![c]!) - t));
        });
      const into = bench.dirty(rows * cols, dtype);
      bench.kernels.crossEntropyGrad(
        { ...operands, gradScores: into, grad: bench.put(dtype, g), divisor: 4 },
        { ...sizes, isPerRow: true },
      );
      expectClose(
        valuesOf(into),
        gradient((r) => g[r]! / 4),
        8 * tolerances[dtype],
      );
      const [one, by] = [bench.put(dtype, [0.5]), bench.put(dtype, [0.25])];
      bench.kernels.crossEntropyGrad(
        { ...operands, gradScores: into, grad: one, divisor: by },
        { ...sizes, isPerRow: false },
      );
      expectClose(
        valuesOf(into),
        gradient(() => 2),
        16 * tolerances[dtype],
      );
    }
  };

  describe('cross entropy', () => {
    test.each(
      types.flatMap((dtype) => (['int32', 'int64'] as const).map((label) => [dtype, label] as const)),
    )('of %s with %s labels and its gradient, ignored rows, weights and smoothing', (dtype, label) => {
      for (const smoothing of [0, 0.25])
        for (const isWeighted of [false, true]) check(dtype, label, smoothing, isWeighted);
    });

    test('stays finite for large scores, takes −∞ as impossible and keeps NaN and ∞ in their rows', () => {
      const rows = [
        [1000, 1001, 999],
        [-3e38, 0, 0],
        [-Infinity, 2, 2],
        [-Infinity, -Infinity, -Infinity],
        [NaN, 1, 2],
        [1, Infinity, 2],
        [1, 2, 3],
      ];
      const isBad = (r: number): boolean => r >= 3 && r < 6;
      for (const dtype of types) {
        const labels = rows.map(() => 1);
        const operands = operandsOf(dtype, 'int64', rows.flat(), labels, null);
        const [losses, into] = [bench.dirty(rows.length, dtype), bench.dirty(3 * rows.length, dtype)];
        const sizes = { rows: rows.length, cols: 3, ignoreIndex, smoothing: 0 };
        bench.kernels.crossEntropy({ ...operands, losses, counts: null }, sizes);
        bench.kernels.crossEntropyGrad(
          { ...operands, gradScores: into, grad: bench.put(dtype, [1]), divisor: 1 },
          { ...sizes, isPerRow: false },
        );
        expectClose(
          valuesOf(losses),
          rows.map((row, r) => (isBad(r) ? NaN : -logSoftmax64(row)[1]!)),
        );
        const want = rows.flatMap((row, r) =>
          logSoftmax64(row).map((x, c) => (isBad(r) ? NaN : Math.exp(x) - (c === 1 ? 1 : 0))),
        );
        expectClose(valuesOf(into), want);
      }
    });

    test('an ignored label need not be outside of the classes', () => {
      const operands = operandsOf('float32', 'int32', [1, 2, 3, 4], [0, 1], null);
      const [losses, into] = [bench.dirty(2), bench.dirty(4)];
      const sizes = { rows: 2, cols: 2, ignoreIndex: 1, smoothing: 0 };
      bench.kernels.crossEntropy({ ...operands, losses, counts: null }, sizes);
      bench.kernels.crossEntropyGrad(
        { ...operands, gradScores: into, grad: bench.floats([1]), divisor: 1 },
        { ...sizes, isPerRow: false },
      );
      expect(valuesOf(losses)[1]).toBe(0);
      expect(valuesOf(into).slice(2)).toEqual([0, 0]);
    });
  });
}
