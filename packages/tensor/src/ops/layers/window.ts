// Sizes and positions of windows that slide over planes [height, width], for convolution and pooling.
import type { Window } from '../../backends/kernels.ts';
import { badOption, shown, windowTooLarge } from '../../errors.ts';

/** One number for both directions, or [vertical, horizontal]. */
export type Pair = number | readonly [vertical: number, horizontal: number];

/** Returns both numbers of an option. Throws unless they are integers of at least `least`. */
export function pairOf(what: string, value: Pair, least: number): readonly [number, number] {
  const pair = typeof value === 'number' ? ([value, value] as const) : value;
  const isRight =
    Array.isArray(pair) &&
    pair.length === 2 &&
    pair.every((size) => Number.isSafeInteger(size) && size >= least);
  if (!isRight) throw badOption(what, `an integer ≥ ${least}, or two`, shown(value));
  return pair;
}

export interface WindowOptions {
  readonly kernel: readonly [number, number];
  readonly stride: readonly [number, number];
  readonly dilation: readonly [number, number];
  /** Padding in front, and in total, by dimension. */
  readonly padding: readonly { readonly before: number; readonly total: number }[];
  /** Whether to include windows that reach beyond the end. Each begins inside, or in the padding in front. */
  readonly ceilMode: boolean;
}

/** Returns the window over planes of these sizes. Throws if it does not fit once. */
export function windowOf(op: string, plane: readonly [number, number], options: WindowOptions): Window {
  const { kernel, stride, dilation, padding, ceilMode } = options;
  const out = plane.map((size, d) => {
    const { before, total } = padding[d]!;
    const free = size + total - dilation[d]! * (kernel[d]! - 1) - 1;
    const steps = free / stride[d]!;
    let count = (ceilMode ? Math.ceil(steps) : Math.floor(steps)) + 1;
    if (ceilMode && (count - 1) * stride[d]! >= size + before) count--;
    if (count < 1 || size === 0) throw windowTooLarge(op, kernel, dilation, plane);
    return count;
  });
  return {
    height: plane[0],
    width: plane[1],
    outHeight: out[0]!,
    outWidth: out[1]!,
    kernelHeight: kernel[0],
    kernelWidth: kernel[1],
    strideY: stride[0],
    strideX: stride[1],
    dilationY: dilation[0],
    dilationX: dilation[1],
    padTop: padding[0]!.before,
    padLeft: padding[1]!.before,
  };
}
