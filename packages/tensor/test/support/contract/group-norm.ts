// Contract of group normalisation and its gradients.
import { describe, test } from 'vitest';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise, rowsOf, tolerances } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const shapes: [batch: number, groups: number, channels: number, inner: number][] = [
  [0, 2, 3, 4],
  [1, 1, 1, 2],
  [3, 2, 2, 1],
  [2, 3, 1, 7],
  [2, 2, 3, 17],
  [1, 4, 2, 300],
  [2, 1, 5, 129],
];
const average = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
const total = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

export function groupNormContract(bench: Workbench): void {
  describe('groupNorm', () => {
    const cases = (['float32', 'float64'] as DType[]).flatMap((dtype) =>
      [true, false].map((isPlain) => [dtype, isPlain] as const),
    );
    test.each(cases)('of %s, without gamma and beta: %s; and its gradients', (dtype, isPlain) => {
      for (const [batch, groups, channels, inner] of shapes) {
        const sizes = { batch, groups, channels, inner };
        const [rows, size, all] = [batch * groups, channels * inner, groups * channels];
        const count = rows * size;
        const eps = 1e-3;
        // Far from 0, so that squares would cancel.
        const x = noise(count).map((value) => value + 20);
        const [g, b] = [noise(all, 3), noise(all, 4)];
        const channelOf = (i: number): number => Math.floor(i / inner) % all;
        const scale = (i: number): number => (isPlain ? 1 : g[channelOf(i)]!);
        const [a, out] = [bench.put(dtype, x), bench.dirty(count, dtype)];
        const [gamma, beta] = isPlain ? [null, null] : [bench.put(dtype, g), bench.put(dtype, b)];
        const [mean, rstd] = [bench.dirty(rows, dtype), bench.dirty(rows, dtype)];
        bench.kernels.groupNorm({ out, mean, rstd, a, gamma, beta }, { ...sizes, eps });

        const means = rowsOf(x, size).map(average);
        const factors = rowsOf(x, size).map(
          (row, r) => 1 / Math.sqrt(average(row.map((value) => (value - means[r]!) ** 2)) + eps),
        );
        const normed = x.map((value, i) => {
          const row = Math.floor(i / size);
          return (value - means[row]!) * factors[row]!;
        });
        const loose = 200 * tolerances[dtype];
        expectClose(
          valuesOf(out),
          normed.map((value, i) => value * scale(i) + (isPlain ? 0 : b[channelOf(i)]!)),
          loose,
        );
        expectClose(valuesOf(mean), means, 4 * tolerances[dtype]);
        expectClose(valuesOf(rstd), factors, loose);

        const [grads, before] = [noise(count, 5), noise(count, 6)];
        const [gradOut, gradIn] = [bench.put(dtype, grads), bench.put(dtype, before)];
        const sums = bench.dirty(2 * batch * all, dtype);
        const reads = { gradOut, a, mean, rstd, gamma };
        bench.kernels.groupNormGrad({ ...reads, gradIn, sums }, { ...sizes, accumulate: true });
        const wantIn = rowsOf(grads, size).flatMap((row, r) => {
          const scaled = row.map((value, i) => value * scale(r * size + i));
          const y = normed.slice(r * size, (r + 1) * size);
          const slope = average(scaled.map((value, i) => value * y[i]!));
          return scaled.map((value, i) => factors[r]! * (value - average(scaled) - y[i]! * slope));
        });
        const wantSums = [
          ...rowsOf(grads, inner).map(total),
          ...rowsOf(
            grads.map((value, i) => value * normed[i]!),
            inner,
          ).map(total),
        ];
        expectClose(
          valuesOf(gradIn),
          wantIn.map((value, i) => value + before[i]!),
          loose,
        );
        expectClose(valuesOf(sums), wantSums, inner * loose);
        // Let the gradient of the input be written instead of added, and leave it out.
        const [fresh, others] = [bench.dirty(count, dtype), bench.dirty(2 * batch * all, dtype)];
        bench.kernels.groupNormGrad(
          { ...reads, gradIn: fresh, sums: others },
          { ...sizes, accumulate: false },
        );
        expectClose(valuesOf(fresh), wantIn, loose);
        const alone = bench.dirty(2 * batch * all, dtype);
        bench.kernels.groupNormGrad({ ...reads, gradIn: null, sums: alone }, { ...sizes, accumulate: false });
        expectClose(valuesOf(alone), wantSums, inner * loose);
      }
    });
  });
}
