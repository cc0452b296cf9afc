// Matrix products, log-softmax and the negative log likelihood.
import type { DenseKernels, MatmulSizes } from '../kernels.ts';
import type { Strided } from '../operands.ts';
import { offsets } from './access.ts';

type Floats = Float32Array | Float64Array;

export function matmul(
  shape: readonly number[],
  out: Strided,
  a: Strided,
  b: Strided,
  { m, n, k, aStep, bStep, transA, transB, accumulate }: MatmulSizes,
): void {
  const [to, left, right] = [out, a, b].map(({ memory }) => memory.host as Floats) as [
    Floats,
    Floats,
    Floats,
  ];
  const [atA, atB] = [offsets(shape, a), offsets(shape, b)];
  for (const [batch, at] of offsets(shape, out).entries()) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = accumulate ? to[at + i * n + j]! : 0;
        for (let p = 0; p < k; p++) {
          const x = left[atA[batch]! + (transA ? p * aStep + i : i * aStep + p)]!;
          sum += x * right[atB[batch]! + (transB ? j * bStep + p : p * bStep + j)]!;
        }
        to[at + i * n + j] = sum;
      }
    }
  }
}

/** Returns row `row` of a dense operand. */
const rowOf = ({ memory, offset }: Strided, row: number, cols: number): Floats =>
  (memory.host as Floats).subarray(offset + row * cols, offset + (row + 1) * cols);

export const logSoftmax: DenseKernels['logSoftmax'] = ({ out, a }, { rows, cols }) => {
  for (let r = 0; r < rows; r++) {
    const from = rowOf(a, r, cols);
    let max = -Infinity;
    for (const x of from) max = Math.max(max, x);
    let sum = 0;
    for (const x of from) sum += Math.exp(x - max);
    rowOf(out, r, cols).set(from.map((x) => x - max - Math.log(sum)));
  }
};

export const logSoftmaxGrad: DenseKernels['logSoftmaxGrad'] = ({ gradIn, gradOut, out }, { rows, cols }) => {
  for (let r = 0; r < rows; r++) {
    const grad = rowOf(gradOut, r, cols);
    const logProbs = rowOf(out, r, cols);
    let sum = 0;
    for (const g of grad) sum += g;
    rowOf(gradIn, r, cols).set(grad.map((g, c) => g - Math.exp(logProbs[c]!) * sum));
  }
};

const labelOf = ({ memory, offset }: Strided, row: number): number => Number(memory.host[offset + row]);

export const nll: DenseKernels['nll'] = ({ losses, logProbs, labels }, { rows, cols }) => {
  for (let r = 0; r < rows; r++) {
    rowOf(losses, r, 1)[0] = -rowOf(logProbs, r, cols)[labelOf(labels, r)]!;
  }
};

export const nllGrad: DenseKernels['nllGrad'] = ({ gradIn, gradLosses, labels }, { rows, cols }) => {
  for (let r = 0; r < rows; r++) {
    const row = rowOf(gradIn, r, cols).fill(0);
    row[labelOf(labels, r)] = -rowOf(gradLosses, r, 1)[0]!;
  }
};
