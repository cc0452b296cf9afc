// Attention, one query after the other. The scores of one query are in memory at once.
import type { AttributesFor, DenseKernels, OperandsFor } from '../kernels.ts';
import type { Strided } from '../operands.ts';
import { dropoutFactor } from './words.ts';

type Operands = OperandsFor<'attention'>;
type Sizes = AttributesFor<'attention'>;

/** Returns the index in memory of element (b, h, row, d) of an operand with four strides. */
const indexOf = ({ strides, offset }: Strided, b: number, h: number, row: number, d: number): number =>
  offset + b * strides![0]! + h * strides![1]! + row * strides![2]! + d * strides![3]!;

const readAt = (operand: Strided, b: number, h: number, row: number, d: number): number =>
  operand.memory.host[indexOf(operand, b, h, row, d)] as number;

interface Query {
  readonly b: number;
  readonly h: number;
  readonly i: number;
  /** Position in [batch, heads, queries]. */
  readonly at: number;
}

function* queriesOf({ batch, heads, queries }: Sizes): Generator<Query> {
  let at = 0;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) for (let i = 0; i < queries; i++) yield { b, h, i, at: at++ };
  }
}

/** Returns the scores of one query for the keys that it may see; −∞ for keys that a mask of bool hides. */
function scoresOf({ q, k, mask }: Operands, sizes: Sizes, { b, h, i }: Query): number[] {
  const seen = sizes.causal ? Math.min(sizes.keys, i + 1) : sizes.keys;
  return Array.from({ length: seen }, (_, j) => {
    let dot = 0;
    for (let d = 0; d < sizes.width; d++) dot += readAt(q, b, h, i, d) * readAt(k, b, h, j, d);
    const score = sizes.scale * dot;
    if (mask === null) return score;
    const value = readAt(mask, b, h, i, j);
    if (mask.memory.dtype !== 'bool') return score + value;
    return value === 0 ? -Infinity : score;
  });
}

export const attention: DenseKernels['attention'] = (operands, sizes) => {
  const { out, lse, v } = operands;
  const factor = dropoutFactor(sizes.dropout, sizes.stream);
  for (const query of queriesOf(sizes)) {
    const { b, h, i, at } = query;
    const scores = scoresOf(operands, sizes, query);
    const most = Math.max(...scores);
    let total = 0;
    for (const score of scores) total += Math.exp(score - most);
    // The query sees no key.
    const isBlind = most === -Infinity;
    lse.memory.host[lse.offset + at] = isBlind ? Infinity : most + Math.log(total);
    for (let d = 0; d < sizes.valueWidth; d++) {
      let sum = 0;
      if (!isBlind) {
        for (const [j, score] of scores.entries()) {
          const p = Math.exp(score - most) / total;
          sum += p * factor(at * sizes.keys + j) * readAt(v, b, h, j, d);
        }
      }
      out.memory.host[indexOf(out, b, h, i, d)] = sum;
    }
  }
};

/** Sums one gradient in float64. `write` rounds the sums to the gradient's dtype. */
class Sums {
  readonly #sums: Float64Array;
  readonly #shape: readonly [number, number, number, number];

  constructor({ batch, heads }: Sizes, rows: number, width: number) {
    this.#shape = [batch, heads, rows, width];
    this.#sums = new Float64Array(batch * heads * rows * width);
  }

  add(b: number, h: number, row: number, d: number, value: number): void {
    const [, heads, rows, width] = this.#shape;
    this.#sums[((b * heads + h) * rows + row) * width + d]! += value;
  }

  write(to: Strided): void {
    const [batch, heads, rows, width] = this.#shape;
    let at = 0;
    for (let b = 0; b < batch; b++)
      for (let h = 0; h < heads; h++)
        for (let row = 0; row < rows; row++)
          for (let d = 0; d < width; d++) to.memory.host[indexOf(to, b, h, row, d)] = this.#sums[at++]!;
  }
}

export const attentionGrad: DenseKernels['attentionGrad'] = (operands, sizes) => {
  const { gradOut, gradQ, gradK, gradV, out, lse, q, k, v } = operands;
  const { scale, queries, keys, width, valueWidth } = sizes;
  const factor = dropoutFactor(sizes.dropout, sizes.stream);
  const [toQ, toK, toV] = [
    new Sums(sizes, queries, width),
    new Sums(sizes, keys, width),
    new Sums(sizes, keys, valueWidth),
  ];
  for (const query of queriesOf(sizes)) {
    const { b, h, i, at } = query;
    // Σ over d of gradOut · out is the mean of gradP below, weighted by the probabilities.
    let mean = 0;
    for (let d = 0; d < valueWidth; d++) mean += readAt(gradOut, b, h, i, d) * readAt(out, b, h, i, d);
    for (const [j, score] of scoresOf(operands, sizes, query).entries()) {
      const p = Math.exp(score - (lse.memory.host[lse.offset + at] as number));
      const f = factor(at * keys + j);
      let gradP = 0;
      for (let d = 0; d < valueWidth; d++) {
        const grad = readAt(gradOut, b, h, i, d);
        gradP += grad * readAt(v, b, h, j, d);
        toV.add(b, h, j, d, p * f * grad);
      }
      const slope = scale * p * (f * gradP - mean);
      for (let d = 0; d < width; d++) {
        toQ.add(b, h, i, d, slope * readAt(k, b, h, j, d));
        toK.add(b, h, j, d, slope * readAt(q, b, h, i, d));
      }
    }
  }
  toQ.write(gradQ);
  toK.write(gradK);
  toV.write(gradV);
};
