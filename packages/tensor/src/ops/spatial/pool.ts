// Pooling over signals and volumes, by pooling over planes, and its variants.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, checkValue, flag, positive } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { countOf } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, badPlanes, differentShapes, needsIndex, shown } from '../../errors.ts';
import { mul, pow } from '../elementwise/binary.ts';
import { requireFloat, requireOperand } from '../elementwise/convert.ts';
import { abs, relu, sign } from '../elementwise/unary.ts';
import { scatter } from '../indexing/scatter.ts';
import {
  adaptiveAvgPool2d,
  avgPool2d,
  checkOutputSize,
  checkPoolSizes,
  type MaxPoolOptions,
  maxPool2d,
  maxPoolOptions,
  type OutputSize,
} from '../layers/pool.ts';
import { type Pair, pairOf } from '../layers/window.ts';
import { reshape, squeeze, unsqueeze } from '../shape/views.ts';
import { badSignal } from './errors.ts';
import { takenAt } from './places.ts';
import { sizesFor } from './sizes.ts';

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

/** Runs `op` on x [batch, channels, length] or [channels, length] as rows of planes. */
function overRows(name: string, x: Tensor, op: (planes: Tensor) => Tensor): Tensor {
  requireFloat(name, x);
  if ((x.rank !== 2 && x.rank !== 3) || x.shape.slice(-2).includes(0)) throw badSignal(name, x.shape);
  return scope(() => squeeze(op(unsqueeze(x, -2)), -2));
}

/** Does what maxPool2d does, for x [batch, channels, length]; the batch may be absent. */
export function maxPool1d(x: Tensor, kernelSize: number, options: MaxPool1dOptions = {}): Tensor {
  checkOptions('maxPool1d', options, maxPoolOptions);
  const { kernel, pairs } = rowWindow('maxPool1d', kernelSize, options);
  return overRows('maxPool1d', x, (planes) => maxPool2d(planes, kernel, pairs));
}

/** Does what avgPool2d does, for x [batch, channels, length]; the batch may be absent. */
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
  return scope(() => {
    let wide = x;
    const kernel = plane.map((size, d) => {
      const bins = binsOf(size, out[d]!);
      const most = Math.max(...bins.map(([begin, end]) => end - begin));
      // Boxes of different sizes become equal: smaller ones repeat their last index.
      const places = bins.flatMap(([begin, end]) =>
        Array.from({ length: most }, (_, i) => Math.min(begin + i, end - 1)),
      );
      const isSame = places.length === size && places.every((place, i) => place === i);
      if (!isSame) wide = takenAt(op, wide, x.rank - 2 + d, places);
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

/** Options of maxUnpool2d(). */
export interface MaxUnpoolOptions {
  /** That of the pooling. Default: the size of the window. */
  readonly stride?: Pair;
  /** That of the pooling. Default 0. */
  readonly padding?: Pair;
  /** [height, width] of the result. Default: the smallest plane that the pooling makes x of. */
  readonly outputSize?: readonly [height: number, width: number] | null;
}

export const maxUnpoolOptions = optionChecks<MaxUnpoolOptions>({
  stride: anything,
  padding: anything,
  outputSize: anything,
});

/** Returns zeros with the elements of x at `indices`, which maxPool2dWithIndices returned. */
export function maxUnpool2d(
  x: Tensor,
  indices: Tensor,
  kernelSize: Pair,
  options: MaxUnpoolOptions = {},
): Tensor {
  const op = 'maxUnpool2d';
  requireFloat(op, x);
  requireOperand(op, 'indices', indices);
  checkOptions(op, options, maxUnpoolOptions);
  const kernel = pairOf(`${op}: kernelSize`, kernelSize, 1);
  const stride = pairOf(`${op}: stride`, options.stride ?? kernel, 1);
  const padding = pairOf(`${op}: padding`, options.padding ?? 0, 0);
  const plane = x.shape.slice(-2) as [number, number];
  if ((x.rank !== 3 && x.rank !== 4) || countOf(plane) === 0) throw badPlanes(op, x.shape);
  if (indices.dtype !== 'int64') throw needsIndex(op, indices.dtype);
  if (indices.shape.join() !== x.shape.join()) throw differentShapes(op, x.shape, indices.shape);
  const smallest = plane.map((size, d) => (size - 1) * stride[d]! + kernel[d]! - 2 * padding[d]!);
  const wanted = options.outputSize ?? smallest;
  const fits =
    Array.isArray(wanted) &&
    wanted.length === 2 &&
    wanted.every(
      (size, d) =>
        Number.isSafeInteger(size) &&
        size >= 1 &&
        (options.outputSize == null || Math.abs(size - smallest[d]!) < stride[d]!),
    );
  if (!fits)
    throw badOption(`${op}: outputSize`, `sizes less than a stride from ${shown(smallest)}`, shown(wanted));
  const front = x.shape.slice(0, -2);
  return scope(() => {
    const flat = [...front, countOf(plane)];
    const none = zeros([...front, countOf(wanted)], { dtype: x.dtype, device: x.device });
    return reshape(scatter(none, -1, reshape(indices, flat), reshape(x, flat)), [...front, ...wanted]);
  });
}

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

/** Does what lpPool2d does, for x [batch, channels, length]; the batch may be absent. */
export function lpPool1d(x: Tensor, p: number, kernelSize: number, options: LpPoolOptions = {}): Tensor {
  requireFloat('lpPool1d', x);
  checkValue('lpPool1d: p', p, positive);
  checkOptions('lpPool1d', options, lpPoolOptions);
  return scope(() => rooted(avgPool1d(pow(x, p), kernelSize, options as AvgPool1dOptions), kernelSize, p));
}

const rooted = (means: Tensor, count: number, p: number): Tensor =>
  pow(mul(mul(sign(means), relu(abs(means))), count), 1 / p);
