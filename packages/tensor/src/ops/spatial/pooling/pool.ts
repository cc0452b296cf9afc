// Pooling over signals and volumes, by pooling over planes, and its variants.

import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { anything, checkValue, flag, positive } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { checkListed } from '../../../core/host-numbers.ts';
import { countOf } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badPlanes } from '../../../errors.ts';
import { mul, pow } from '../../elementwise/binary.ts';
import { requireFloat } from '../../elementwise/convert.ts';
import { abs, relu, sign } from '../../elementwise/unary.ts';
import {
  adaptiveAvgPool2d,
  avgPool2d,
  checkOutputSize,
  checkPoolSizes,
  type MaxPoolOptions,
  maxPool2d,
  maxPool2dWithIndices,
  maxPoolOptions,
  type OutputSize,
} from '../../layers/pool.ts';
import { type Pair, pairOf } from '../../layers/window.ts';
import { squeeze, unsqueeze } from '../../shape/views.ts';
import { badSignal } from '../errors.ts';
import { takenAt } from '../positions.ts';
import { sizesFor } from '../sizes.ts';

/** Options of maxPool1d(). */
export interface MaxPool1dOptions {
  /** Default: the size of the window. */
  readonly stride?: number;
  /** Elements on each side; at most half of the window. Default 0. */
  readonly padding?: number;
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: number;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
}

/** Options of avgPool1d(). */
export interface AvgPool1dOptions {
  /** Default: the size of the window. */
  readonly stride?: number;
  /** Elements on each side; at most half of the window. Default 0. */
  readonly padding?: number;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
  /** Whether padding counts as elements that are 0. Default true. */
  readonly countIncludePad?: boolean;
}

export const avgPool1dOptions = optionChecks<AvgPool1dOptions>({
  stride: anything,
  padding: anything,
  ceilMode: flag,
  countIncludePad: flag,
});

/** Returns size, stride, padding and dilation of a window over signals as those of a window over rows of planes. */
export function rowWindow(op: string, kernelSize: number, options: MaxPool1dOptions) {
  const one = (name: string, value: number, least: number): number =>
    sizesFor(`${op}: ${name}`, value, 1, least)[0]!;
  const size = one('kernelSize', kernelSize, 1);
  const kernel: Pair = [1, size];
  const pairs: MaxPoolOptions = {
    stride: [1, one('stride', options.stride ?? size, 1)],
    padding: [0, one('padding', options.padding ?? 0, 0)],
    dilation: [1, one('dilation', options.dilation ?? 1, 1)],
    ceilMode: options.ceilMode ?? false,
  };
  checkPoolSizes(op, kernel, pairs);
  return { kernel, pairs };
}

function checkRows(op: string, x: Tensor): void {
  requireFloat(op, x);
  if ((x.rank !== 2 && x.rank !== 3) || x.shape.slice(-2).includes(0)) throw badSignal(op, x.shape);
}

/** Runs `op` on x [batch, channels, length] or [channels, length] as rows of planes. */
function overRows(name: string, x: Tensor, op: (planes: Tensor) => Tensor): Tensor {
  checkRows(name, x);
  return scope(() => squeeze(op(unsqueeze(x, -2)), -2));
}

/** Returns the maximum of each window of x [batch, channels, length]; the batch may be absent. */
export function maxPool1d(x: Tensor, kernelSize: number, options: MaxPool1dOptions = {}): Tensor {
  checkOptions('maxPool1d', options, maxPoolOptions);
  const { kernel, pairs } = rowWindow('maxPool1d', kernelSize, options);
  return overRows('maxPool1d', x, (planes) => maxPool2d(planes, kernel, pairs));
}

/**
 * Returns the result of maxPool1d, and an int64 tensor of the same shape with the position of each element in its
 * signal.
 */
export function maxPool1dWithIndices(
  x: Tensor,
  kernelSize: number,
  options: MaxPool1dOptions = {},
): [values: Tensor, indices: Tensor] {
  const op = 'maxPool1d';
  checkOptions(op, options, maxPoolOptions);
  const { kernel, pairs } = rowWindow(op, kernelSize, options);
  checkRows(op, x);
  return scope(() => {
    const [values, indices] = maxPool2dWithIndices(unsqueeze(x, -2), kernel, pairs);
    return [squeeze(values, -2), squeeze(indices, -2)];
  });
}

/** Returns the mean of each window of x [batch, channels, length]; the batch may be absent. */
export function avgPool1d(x: Tensor, kernelSize: number, options: AvgPool1dOptions = {}): Tensor {
  checkOptions('avgPool1d', options, avgPool1dOptions);
  const { kernel, pairs } = rowWindow('avgPool1d', kernelSize, options);
  const { stride, padding, ceilMode } = pairs as Required<MaxPoolOptions>;
  const { countIncludePad = true } = options;
  return overRows('avgPool1d', x, (planes) =>
    avgPool2d(planes, kernel, { stride, padding, ceilMode, countIncludePad }),
  );
}

/** Computes means over `outputSize` parts that cover the signal; x as for avgPool1d. */
export function adaptiveAvgPool1d(x: Tensor, outputSize: number): Tensor {
  const [size] = sizesFor('adaptiveAvgPool1d: outputSize', outputSize, 1, 1) as [number];
  return overRows('adaptiveAvgPool1d', x, (planes) => adaptiveAvgPool2d(planes, [1, size]));
}

/** Takes the largest elements of `outputSize` parts that cover the signal; x as for maxPool1d. */
export function adaptiveMaxPool1d(x: Tensor, outputSize: number): Tensor {
  const [size] = sizesFor('adaptiveMaxPool1d: outputSize', outputSize, 1, 1) as [number];
  return overRows('adaptiveMaxPool1d', x, (planes) => adaptiveMaxPool2d(planes, [1, size]));
}

/** Takes the largest elements of `outputSize` boxes that cover the plane; x as for maxPool2d. */
export function adaptiveMaxPool2d(x: Tensor, outputSize: OutputSize): Tensor {
  const op = 'adaptiveMaxPool2d';
  requireFloat(op, x);
  const plane = x.shape.slice(-2) as [number, number];
  if ((x.rank !== 3 && x.rank !== 4) || countOf(plane) === 0) throw badPlanes(op, x.shape);
  const out = checkOutputSize(op, outputSize, plane);
  for (const size of out) checkListed(size, 2 ** 24);
  return scope(() => {
    let wide = x;
    const kernel = plane.map((size, d) => {
      const bins = binsOf(size, out[d]!);
      const most = bins.reduce((largest, [begin, end]) => Math.max(largest, end - begin), 0);
      // Boxes of different sizes become equal: smaller ones repeat their last index.
      const positions = bins.flatMap(([begin, end]) =>
        Array.from({ length: most }, (_, i) => Math.min(begin + i, end - 1)),
      );
      const isSame = positions.length === size && positions.every((position, i) => position === i);
      if (!isSame) wide = takenAt(op, wide, x.rank - 2 + d, positions);
      return most;
    });
    return maxPool2d(wide, kernel as [number, number]);
  });
}

const binsOf = (size: number, count: number): (readonly [begin: number, end: number])[] =>
  Array.from({ length: count }, (_, o) => [
    Math.floor((o * size) / count),
    Math.ceil(((o + 1) * size) / count),
  ]);

/** Options of lpPool1d() and lpPool2d(). */
export interface LpPoolOptions {
  /** Default: the size of the window. */
  readonly stride?: Pair;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
}

export const lpPoolOptions = optionChecks<LpPoolOptions>({ stride: anything, ceilMode: flag });

/** Returns (Σ x ** p) ** (1 / p) over each window; x as for avgPool2d. */
export function lpPool2d(x: Tensor, p: number, kernelSize: Pair, options: LpPoolOptions = {}): Tensor {
  requireFloat('lpPool2d', x);
  checkValue('lpPool2d: p', p, positive);
  checkOptions('lpPool2d', options, lpPoolOptions);
  const [high, wide] = pairOf('lpPool2d: kernelSize', kernelSize, 1);
  return scope(() => rooted(avgPool2d(pow(x, p), [high, wide], options), high * wide, p));
}

/** Returns (Σ x ** p) ** (1 / p) over each window of x [batch, channels, length]; the batch may be absent. */
export function lpPool1d(x: Tensor, p: number, kernelSize: number, options: LpPoolOptions = {}): Tensor {
  requireFloat('lpPool1d', x);
  checkValue('lpPool1d: p', p, positive);
  checkOptions('lpPool1d', options, lpPoolOptions);
  return scope(() => rooted(avgPool1d(pow(x, p), kernelSize, options as AvgPool1dOptions), kernelSize, p));
}

/** Returns the roots of sums, of which `means` has the means over `count` elements. */
export const rooted = (means: Tensor, count: number, p: number): Tensor =>
  pow(mul(mul(sign(means), relu(abs(means))), count), 1 / p);
