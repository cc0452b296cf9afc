// Contract of layer and RMS normalisation, with and without an addition before, and of their gradients.
import { describe, test } from 'vitest';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise, rowsOf, tolerances } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const shapes: [rows: number, cols: number][] = [
  [0, 5],
  [1, 1],
  [3, 2],
  [5, 17],
  [4, 33],
  [9, 128],
  [2, 1000],
];
const average = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** The statistics of a row. */
interface Row {
  readonly mean: number;
  readonly rstd: number;
}

function statistics(row: readonly number[], hasMean: boolean, eps: number): Row {
  const mean = hasMean ? average(row) : 0;
  return { mean, rstd: 1 / Math.sqrt(average(row.map((x) => (x - mean) ** 2)) + eps) };
}

export function normContract(bench: Workbench): void {
  describe('norm', () => {
    // hasMean: layer norm, else RMS norm. isPlain: without addend, gamma and beta.
    const cases = (['float32', 'float64'] as DType[]).flatMap((dtype) =>
      [true, false].flatMap((hasMean) => [true, false].map((isPlain) => [dtype, hasMean, isPlain] as const)),
    );
    test.each(cases)('of %s, with mean: %s, plain: %s; and its gradients', (dtype, hasMean, isPlain) => {
      for (const [rows, cols] of shapes) {
        const count = rows * cols;
        const eps = 1e-3;
        const [x, y, g, b] = [noise(count), noise(count, 2), noise(cols, 3), noise(cols, 4)];
        const values = isPlain ? x : x.map((value, i) => value + y[i]!);
        const [a, addend, sum] = [bench.put(dtype, x), bench.put(dtype, y), bench.dirty(count, dtype)];
        const [gamma, beta] = isPlain ? [null, null] : [bench.put(dtype, g), bench.put(dtype, b)];
        const out = bench.dirty(count, dtype);
        const [mean, rstd] = [hasMean ? bench.dirty(rows, dtype) : null, bench.dirty(rows, dtype)];
        const plus = isPlain ? { addend: null, sum: null } : { addend, sum };
        bench.kernels.norm({ out, mean, rstd, a, ...plus, gamma, beta }, { rows, cols, eps });

        const known = rowsOf(values, cols).map((row) => statistics(row, hasMean, eps));
        const normed = values.map((value, i) => {
          const { mean: center, rstd: factor } = known[Math.floor(i / cols)]!;
          return (value - center) * factor;
        });
        const scale = (i: number): number => (isPlain ? 1 : g[i % cols]!);
        const tolerance = 4 * tolerances[dtype];
        expectClose(
          valuesOf(out),
          normed.map((value, i) => value * scale(i) + (isPlain ? 0 : b[i % cols]!)),
          tolerance,
        );
        expectClose(
          valuesOf(rstd),
          known.map((row) => row.rstd),
          tolerance,
        );
        if (mean)
          expectClose(
            valuesOf(mean),
            known.map((row) => row.mean),
            tolerance,
          );
        if (!isPlain) expectClose(valuesOf(sum), values, tolerance);

        const grads = noise(count, 5);
        const before = noise(count, 6);
        const [gradOut, gradIn] = [bench.put(dtype, grads), bench.put(dtype, before)];
        const [gradGamma, gradBeta] = [bench.dirty(cols, dtype), bench.dirty(cols, dtype)];
        const input = isPlain ? a : sum;
        const reads = { gradOut, a: input, mean, rstd, gamma };
        const sizes = { rows, cols, accumulate: false };
        bench.kernels.normGrad({ ...reads, gradIn, gradGamma, gradBeta }, { ...sizes, accumulate: true });
        const wantIn = rowsOf(grads, cols).flatMap((row, r) => {
          const scaled = row.map((value, c) => value * scale(c));
          const y0 = normed.slice(r * cols, (r + 1) * cols);
          const flat = hasMean ? average(scaled) : 0;
          const slope = average(scaled.map((value, c) => value * y0[c]!));
          return scaled.map((value, c) => known[r]!.rstd * (value - flat - y0[c]! * slope));
        });
        const column = (f: (i: number) => number): number[] =>
          Array.from({ length: cols }, (_, c) => {
            let total = 0;
            for (let r = 0; r < rows; r++) total += f(r * cols + c);
            return total;
          });
        const loose = 20 * tolerances[dtype];
        expectClose(
          valuesOf(gradIn),
          wantIn.map((value, i) => value + before[i]!),
          loose,
        );
        expectClose(
          valuesOf(gradGamma),
          column((i) => grads[i]! * normed[i]!),
          loose,
        );
        expectClose(
          valuesOf(gradBeta),
          column((i) => grads[i]!),
          loose,
        );
        // Compute each output alone, and let it be written instead of added.
        const fresh = bench.dirty(count, dtype);
        bench.kernels.normGrad({ ...reads, gradIn: fresh, gradGamma: null, gradBeta: null }, sizes);
        expectClose(valuesOf(fresh), wantIn, loose);
        const alone = bench.dirty(cols, dtype);
        bench.kernels.normGrad({ ...reads, gradIn: null, gradGamma: null, gradBeta: alone }, sizes);
        expectClose(
          valuesOf(alone),
          column((i) => grads[i]!),
          loose,
        );
      }
    });
  });
}
