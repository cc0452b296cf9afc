// The part of the kernel contract that losses of classes need: softmax, likelihood and reduction of a row in
// one kernel, and its gradient in another. Dense operands of one type, float32 or float64.
import type { Input, Strided } from './operands.ts';

/** Sizes of scores [rows, cols]. */
export interface CrossEntropySizes {
  readonly rows: number;
  readonly cols: number;
  /** Rows with this label have loss, count and gradient 0. */
  readonly ignoreIndex: number;
  /** The share of each label that is spread evenly over all classes. */
  readonly smoothing: number;
}

export interface CrossEntropyOperands {
  readonly scores: Strided;
  /** [rows], int32 or int64: classes, checked by the op or noted as a fault by a device. */
  readonly labels: Strided;
  /** Weight of each class [cols]; null stands for 1. */
  readonly weight: Strided | null;
  /**
   * [rows, 2]: the largest score of a row, and log Σ exp(score − largest). Written by the forward, read by
   * the gradient.
   */
  readonly kept: Strided;
}

export interface LossKernels {
  /** losses[r] = −Σ over classes of target · weight · log softmax(scores), the target being the smoothed label, and
   *  counts[r], unless it is null, the weight of the label. */
  readonly crossEntropy: (
    losses: Strided,
    counts: Strided | null,
    operands: CrossEntropyOperands,
    sizes: CrossEntropySizes,
  ) => void;
  /** Writes the gradient of the scores, given that of the losses ÷ divisor: one for each row, or one for all. */
  readonly crossEntropyGrad: (
    gradScores: Strided,
    grad: Strided,
    isPerRow: boolean,
    divisor: Input,
    operands: CrossEntropyOperands,
    sizes: CrossEntropySizes,
  ) => void;
}
