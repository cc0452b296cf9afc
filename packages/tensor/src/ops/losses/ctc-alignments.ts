// Connectionist temporal classification of one sequence (Graves et al., 2006): the probability of all alignments of a
// target with frames, and its gradient, by the forward-backward algorithm in the logarithm, with numbers in float64.

/** The frames of one sequence, in the array of a batch: class c of frame t is at start + t * stride + c. */
export interface Frames {
  readonly values: ArrayLike<number>;
  readonly start: number;
  readonly stride: number;
  readonly count: number;
}

/** Returns log(exp a + exp b). */
function logSum(a: number, b: number): number {
  const [high, low] = a > b ? [a, b] : [b, a];
  return low === -Infinity ? high : high + Math.log1p(Math.exp(low - high));
}

/** Returns the target with a blank in front of each label and behind the last one. */
function withBlanks(target: ArrayLike<number>, blank: number): Int32Array {
  const labels = new Int32Array(2 * target.length + 1).fill(blank);
  for (let i = 0; i < target.length; i++) labels[2 * i + 1] = target[i]!;
  return labels;
}

/**
 * Tells whether an alignment may continue from the label two before `s`: if the one between is a blank that is not
 * needed, because both labels differ.
 */
const skips = (labels: Int32Array, s: number): boolean =>
  s % 2 === 1 && s >= 2 && labels[s] !== labels[s - 2];

/**
 * Returns −log of the sum of the probabilities of all alignments; ∞ if there is none. Adds to `gradient`, which is laid
 * out as the frames, the derivative with respect to each log probability, negative probabilities of being at a label,
 * unless it is null. Without an alignment these are NaN.
 */
export function alignmentLoss(
  frames: Frames,
  target: ArrayLike<number>,
  blank: number,
  classes: number,
  gradient: Float64Array | null,
): number {
  const { values, start, stride, count } = frames;
  if (count === 0) return target.length === 0 ? 0 : Infinity;
  const labels = withBlanks(target, blank);
  const width = labels.length;
  const at = (t: number, s: number): number => values[start + t * stride + labels[s]!]!;
  // ahead[t, s]: the logarithm of the probability of frames up to t with label s at t.
  const ahead = new Float64Array(count * width).fill(-Infinity);
  ahead[0] = at(0, 0);
  if (width > 1) ahead[1] = at(0, 1);
  for (let t = 1; t < count; t++) {
    const [row, before] = [t * width, (t - 1) * width];
    for (let s = 0; s < width; s++) {
      let sum = ahead[before + s]!;
      if (s > 0) sum = logSum(sum, ahead[before + s - 1]!);
      if (skips(labels, s)) sum = logSum(sum, ahead[before + s - 2]!);
      ahead[row + s] = sum + at(t, s);
    }
  }
  const end = (count - 1) * width;
  const total = width > 1 ? logSum(ahead[end + width - 1]!, ahead[end + width - 2]!) : ahead[end]!;
  if (gradient === null) return -total;
  if (total === -Infinity || Number.isNaN(total)) {
    for (let t = 0; t < count; t++)
      for (let c = 0; c < classes; c++) gradient[start + t * stride + c] = Number.NaN;
    return -total;
  }
  // behind[s]: the same of the frames after t.
  let behind = new Float64Array(width).fill(-Infinity);
  behind[width - 1] = 0;
  if (width > 1) behind[width - 2] = 0;
  for (let t = count - 1; t >= 0; t--) {
    for (let s = 0; s < width; s++)
      gradient[start + t * stride + labels[s]!]! -= Math.exp(ahead[t * width + s]! + behind[s]! - total);
    if (t === 0) break;
    const earlier = new Float64Array(width);
    for (let s = 0; s < width; s++) {
      let sum = behind[s]! + at(t, s);
      if (s + 1 < width) sum = logSum(sum, behind[s + 1]! + at(t, s + 1));
      if (s + 2 < width && skips(labels, s + 2)) sum = logSum(sum, behind[s + 2]! + at(t, s + 2));
      earlier[s] = sum;
    }
    behind = earlier;
  }
  return -total;
}
