// Cross entropy of scores and labels, row by row.

import type { parts } from '../declarations/declarations.ts';
import type { AttributesOf, OperandsOf } from '../declarations/declare.ts';
import type { DenseKernels } from '../kernels.ts';
import type { Strided } from '../operands.ts';

type Operands = OperandsOf<typeof parts.LabelledScores>;
type Sizes = AttributesOf<typeof parts.LabelledScores>;

type Floats = Float32Array | Float64Array;
const floats = ({ memory, offset }: Strided, count: number): Floats =>
  (memory.host as Floats).subarray(offset, offset + count);

/** Calls body(row, its scores, its label, its two kept numbers) for each row; the label is −1 where it is ignored. */
function forEachRow(
  { scores, labels, kept }: Operands,
  { rows, cols, ignoreIndex }: Sizes,
  body: (row: number, scores: Floats, label: number, kept: Floats) => void,
): void {
  const [all, pairs] = [floats(scores, rows * cols), floats(kept, 2 * rows)];
  for (let r = 0; r < rows; r++) {
    const label = Number(labels.memory.host[labels.offset + r]);
    const ignored = label === ignoreIndex;
    body(r, all.subarray(r * cols, (r + 1) * cols), ignored ? -1 : label, pairs.subarray(2 * r, 2 * r + 2));
  }
}

/** Returns the weight of each class. */
const weightsOf = ({ weight }: Operands, cols: number): Floats =>
  weight === null ? new Float64Array(cols).fill(1) : floats(weight, cols);

export const crossEntropy: DenseKernels['crossEntropy'] = (operands, sizes) => {
  const { losses, counts } = operands;
  const { rows, cols, smoothing } = sizes;
  const [out, counted, weights] = [
    floats(losses, rows),
    counts && floats(counts, rows),
    weightsOf(operands, cols),
  ];
  forEachRow(operands, sizes, (r, scores, label, kept) => {
    if (counted) counted[r] = label < 0 ? 0 : weights[label]!;
    out[r] = 0;
    kept.fill(0);
    if (label < 0) return;
    let largest = -Infinity;
    for (const x of scores) largest = Math.max(largest, x);
    let sum = 0;
    for (const x of scores) sum += Math.exp(x - largest);
    const norm = Math.log(sum);
    kept.set([largest, norm]);
    const lossOf = (c: number): number => weights[c]! * (norm - (scores[c]! - largest));
    let spread = 0;
    if (smoothing > 0) for (let c = 0; c < cols; c++) spread += lossOf(c);
    out[r] = (1 - smoothing) * lossOf(label) + (smoothing / cols) * spread;
  });
};

export const crossEntropyGrad: DenseKernels['crossEntropyGrad'] = (operands, sizes) => {
  const { gradScores, grad, divisor } = operands;
  const { rows, cols, smoothing, isPerRow } = sizes;
  const weights = weightsOf(operands, cols);
  const grads = floats(grad, isPerRow ? rows : 1);
  const by = typeof divisor === 'number' ? divisor : floats(divisor, 1)[0]!;
  const into = floats(gradScores, rows * cols);
  let total = 0;
  for (const weight of weights) total += weight;
  forEachRow(operands, sizes, (r, scores, label, [largest, norm]) => {
    const row = into.subarray(r * cols, (r + 1) * cols).fill(0);
    if (label < 0) return;
    const scale = grads[isPerRow ? r : 0]! / by;
    const own = (1 - smoothing) * weights[label]! * scale;
    const spread = (smoothing / cols) * scale;
    for (let c = 0; c < cols; c++) {
      const probability = Math.exp(scores[c]! - largest! - norm!);
      row[c] = (own + spread * total) * probability - spread * weights[c]! - (c === label ? own : 0);
    }
  });
};
