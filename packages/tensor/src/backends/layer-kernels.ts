// The part of the kernel contract that layers need beyond elementwise ops: convolution, pooling and sums by
// channel, over dense operands of float32 or float64; convolutions on CUDA also of float16 and bfloat16,
// summed in float32.

import type { ConvSizes, PoolSizes, Window } from '../ops/layers/window.ts';
import type { Strided } from './operands.ts';

/** Activations that a fused linear layer can apply. The order is that of Activation in native/tensor/linear.h. */
export const activations = ['none', 'relu', 'gelu', 'geluTanh'] as const;
export type Activation = (typeof activations)[number];

/** x [rows, ins], w [outs, ins], bias [outs], out [rows, outs]. */
export interface LinearSizes {
  readonly rows: number;
  readonly outs: number;
  readonly ins: number;
}

export interface LayerKernels {
  /** out = activation(x · wᵀ + bias); `before`, unless it is null, is what the activation was applied to. */
  readonly linear: (
    out: Strided,
    before: Strided | null,
    x: Strided,
    w: Strided,
    bias: Strided | null,
    activation: Activation,
    sizes: LinearSizes,
  ) => void;
  /** gradBefore = grad · activation′, and gradBias, unless it is null, its sums over the rows. `saved` is the result of
   *  relu, and what gelu and geluTanh were applied to. */
  readonly linearGrad: (
    gradBefore: Strided,
    gradBias: Strided | null,
    grad: Strided,
    saved: Strided,
    activation: Exclude<Activation, 'none'>,
    rows: number,
    outs: number,
  ) => void;
  /** Elements of a window outside of its plane count as 0. */
  readonly conv2d: (out: Strided, x: Strided, weight: Strided, sizes: ConvSizes) => void;
  /** Writes, or adds when `accumulate`. */
  readonly conv2dGradInput: (
    gradX: Strided,
    grad: Strided,
    weight: Strided,
    sizes: ConvSizes,
    accumulate: boolean,
  ) => void;
  readonly conv2dGradWeight: (
    gradWeight: Strided,
    grad: Strided,
    x: Strided,
    sizes: ConvSizes,
    accumulate: boolean,
  ) => void;
  /** The largest element under each window, and (int64) its position in the plane: the first, NaN being the largest
   *  and the last NaN taken. Padding is never taken; a window over nothing gives −∞ and position 0. */
  readonly maxPool: (out: Strided, positions: Strided, a: Strided, planes: number, window: Window) => void;
  /** Means over boxes. `bins` is int64 [outHeight + outWidth, 3]: begin, end and divisor of each output row, then of
   *  each output column; a box is divided by the product of its two divisors. */
  readonly avgPool: (out: Strided, a: Strided, bins: Strided, sizes: PoolSizes) => void;
  /** Writes gradIn. */
  readonly avgPoolGrad: (gradIn: Strided, grad: Strided, bins: Strided, sizes: PoolSizes) => void;
  /** a is [outer, channels, inner], out [2, channels]: the means (0 of nothing), and the sums of squared distances from
   *  them. */
  readonly channelMoments: (out: Strided, a: Strided, outer: number, channels: number, inner: number) => void;
  /** out is [2, channels]: Σ grad, and Σ grad · (a − mean), with one mean per channel. */
  readonly channelGradSums: (
    out: Strided,
    grad: Strided,
    a: Strided,
    mean: Strided,
    outer: number,
    channels: number,
    inner: number,
  ) => void;
}
