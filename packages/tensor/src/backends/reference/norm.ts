// Normalisation of rows by mean and variance, or by the root mean square, of groups of channels, and its gradients.
import type { DenseKernels } from '../kernels.ts';
import type { Strided } from '../operands.ts';

type Floats = Float32Array | Float64Array;

const rowOf = ({ memory, offset }: Strided, row: number, cols: number): Floats =>
  (memory.host as Floats).subarray(offset + row * cols, offset + (row + 1) * cols);
const average = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

export const norm: DenseKernels['norm'] = (
  { out, mean, rstd, a, addend, sum, gamma, beta },
  { rows, cols, eps },
) => {
  for (let r = 0; r < rows; r++) {
    let row = rowOf(a, r, cols);
    if (addend && sum) {
      const added = rowOf(addend, r, cols);
      const total = rowOf(sum, r, cols);
      total.set(row.map((x, c) => x + added[c]!));
      row = total;
    }
    const center = mean ? average([...row]) : 0;
    const factor = 1 / Math.sqrt(average([...row].map((x) => (x - center) ** 2)) + eps);
    if (mean) rowOf(mean, r, 1)[0] = center;
    rowOf(rstd, r, 1)[0] = factor;
    const scale = gamma && rowOf(gamma, 0, cols);
    const shift = beta && rowOf(beta, 0, cols);
    rowOf(out, r, cols).set(row.map((x, c) => (x - center) * factor * (scale?.[c] ?? 1) + (shift?.[c] ?? 0)));
  }
};

export const normGrad: DenseKernels['normGrad'] = (
  { gradIn, gradGamma, gradBeta, gradOut, a, mean, rstd, gamma },
  { rows, cols, accumulate },
) => {
  const toGamma = new Float64Array(cols);
  const toBeta = new Float64Array(cols);
  const scale = gamma && rowOf(gamma, 0, cols);
  for (let r = 0; r < rows; r++) {
    const grad = rowOf(gradOut, r, cols);
    const center = mean ? rowOf(mean, r, 1)[0]! : 0;
    const factor = rowOf(rstd, r, 1)[0]!;
    const y = Array.from(rowOf(a, r, cols), (x) => (x - center) * factor);
    const scaled = Array.from(grad, (g, c) => g * (scale?.[c] ?? 1));
    for (let c = 0; c < cols; c++) {
      toGamma[c]! += grad[c]! * y[c]!;
      toBeta[c]! += grad[c]!;
    }
    if (!gradIn) continue;
    const flat = mean ? average(scaled) : 0;
    const slope = average(scaled.map((g, c) => g * y[c]!));
    const to = rowOf(gradIn, r, cols);
    to.set(to.map((old, c) => factor * (scaled[c]! - flat - y[c]! * slope) + (accumulate ? old : 0)));
  }
  if (gradGamma) rowOf(gradGamma, 0, cols).set(toGamma);
  if (gradBeta) rowOf(gradBeta, 0, cols).set(toBeta);
};

export const groupNorm: DenseKernels['groupNorm'] = (
  { out, mean, rstd, a, gamma, beta },
  { batch, groups, channels, inner, eps },
) => {
  const size = channels * inner;
  for (let r = 0; r < batch * groups; r++) {
    const row = rowOf(a, r, size);
    const center = average([...row]);
    const factor = 1 / Math.sqrt(average([...row].map((x) => (x - center) ** 2)) + eps);
    rowOf(mean, r, 1)[0] = center;
    rowOf(rstd, r, 1)[0] = factor;
    const scale = gamma && rowOf(gamma, r % groups, channels);
    const shift = beta && rowOf(beta, r % groups, channels);
    rowOf(out, r, size).set(
      row.map((x, i) => {
        const channel = Math.floor(i / inner);
        return (x - center) * factor * (scale?.[channel] ?? 1) + (shift?.[channel] ?? 0);
      }),
    );
  }
};

export const groupNormGrad: DenseKernels['groupNormGrad'] = (
  { gradOut, a, mean, rstd, gamma, gradIn, sums },
  { batch, groups, channels, inner, accumulate },
) => {
  const size = channels * inner;
  const rows = batch * groups;
  for (let r = 0; r < rows; r++) {
    const grad = rowOf(gradOut, r, size);
    const center = rowOf(mean, r, 1)[0]!;
    const factor = rowOf(rstd, r, 1)[0]!;
    const scale = gamma && rowOf(gamma, r % groups, channels);
    const y = Array.from(rowOf(a, r, size), (x) => (x - center) * factor);
    const totals = [new Float64Array(channels), new Float64Array(channels)];
    for (const [i, g] of grad.entries()) {
      totals[0]![Math.floor(i / inner)]! += g;
      totals[1]![Math.floor(i / inner)]! += g * y[i]!;
    }
    rowOf(sums, r, channels).set(totals[0]!);
    rowOf(sums, rows + r, channels).set(totals[1]!);
    if (!gradIn) continue;
    const scaled = Array.from(grad, (g, i) => g * (scale?.[Math.floor(i / inner)] ?? 1));
    const flat = average(scaled);
    const slope = average(scaled.map((g, i) => g * y[i]!));
    const to = rowOf(gradIn, r, size);
    to.set(to.map((old, i) => factor * (scaled[i]! - flat - y[i]! * slope) + (accumulate ? old : 0)));
  }
};
