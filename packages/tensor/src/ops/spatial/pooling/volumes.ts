// Pooling over volumes: over the planes [height, width] of each depth first, then over the depths.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { anything, checkValue, flag, positive } from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { isHalf } from '../../../core/dtype.ts';
import { countOf, type Shape } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, shown, windowTooLarge } from '../../../errors.ts';
import { add, mul, pow } from '../../elementwise/binary.ts';
import { requireFloat, to } from '../../elementwise/convert.ts';
import { floorDivide } from '../../elementwise/functions/pairs.ts';
import { gather } from '../../indexing/lookup.ts';
import {
  adaptiveAvgPool2d,
  avgPool2d,
  avgPoolChecks,
  maxPool2d,
  maxPool2dWithIndices,
  maxPoolChecks,
} from '../../layers/pool.ts';
import { reshape } from '../../shape/views.ts';
import { badVolume, windowBeyondVolume } from '../errors.ts';
import { sizesFor, type Triple } from '../sizes.ts';
import { adaptiveMaxPool2d, rooted } from './pool.ts';

/** Options of maxPool3d(). */
export interface MaxPool3dOptions {
  /** Default: the size of the window. */
  readonly stride?: Triple;
  /** Elements on each side; at most half of the window. Default 0. */
  readonly padding?: Triple;
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: Triple;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
}

/** Options of avgPool3d(). */
export interface AvgPool3dOptions {
  /** Default: the size of the window. */
  readonly stride?: Triple;
  /** Elements on each side; at most half of the window. Default 0. */
  readonly padding?: Triple;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
  /** Whether padding counts as elements that are 0. Default true. */
  readonly countIncludePad?: boolean;
  /** Divisor of the sums, instead of the number of elements; null, the default, means that number. */
  readonly divisorOverride?: number | null;
}

/** Options of lpPool3d(). */
export interface LpPool3dOptions {
  /** Default: the size of the window. */
  readonly stride?: Triple;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
}

export const maxPool3dOptions = optionChecks<MaxPool3dOptions>(maxPoolChecks);
export const avgPool3dOptions = optionChecks<AvgPool3dOptions>(avgPoolChecks);
export const lpPool3dOptions = optionChecks<LpPool3dOptions>({ stride: anything, ceilMode: flag });

type Three = readonly [depth: number, height: number, width: number];

/** A window over planes, and one over rows of depths: kernel, stride, padding and dilation of each. */
interface Windows {
  readonly kernel: Three;
  readonly planes: { readonly stride: [number, number]; readonly padding: [number, number] };
  readonly depths: { readonly stride: [number, number]; readonly padding: [number, number] };
  readonly dilation: Three;
}

/** Returns the windows, checked. */
export function windowsOf(op: string, kernelSize: Triple, options: MaxPool3dOptions): Windows {
  const three = (name: string, value: Triple, least: number): Three =>
    sizesFor(`${op}: ${name}`, value, 3, least) as Three;
  const kernel = three('kernelSize', kernelSize, 1);
  const stride = three('stride', options.stride ?? kernel, 1);
  const padding = three('padding', options.padding ?? 0, 0);
  const dilation = three('dilation', options.dilation ?? 1, 1);
  if (padding.some((size, d) => 2 * size > kernel[d]!))
    throw badOption(`${op}: padding`, `at most half of the window [${kernel.join(', ')}]`, shown(padding));
  return {
    kernel,
    dilation,
    planes: { stride: [stride[1], stride[2]], padding: [padding[1], padding[2]] },
    depths: { stride: [stride[0], 1], padding: [padding[0], 0] },
  };
}

/** A volume as planes of each depth, and its leading dimensions. */
interface Volume {
  readonly front: Shape;
  readonly size: Three;
}

export function volumeOf(op: string, x: Tensor): Volume {
  requireFloat(op, x);
  const size = x.shape.slice(-3);
  if ((x.rank !== 4 && x.rank !== 5) || size.includes(0)) throw badVolume(op, x.shape);
  return { front: x.shape.slice(0, -3), size: size as unknown as Three };
}

/** Pools x by a function of planes [batch, depth, height, width], then by one of rows [batch, depth, elements]. */
function pooled(
  x: Tensor,
  { front, size }: Volume,
  overPlanes: (planes: Tensor) => Tensor,
  overDepths: (rows: Tensor) => Tensor,
): Tensor {
  const batch = countOf(front);
  const flat = overPlanes(reshape(x, [batch, ...size]));
  const [high, wide] = flat.shape.slice(-2) as [number, number];
  const out = overDepths(reshape(flat, [batch, size[0], high * wide]));
  return reshape(out, [...front, out.shape[1]!, high, wide]);
}

/** Throws if no window fits, with all three sizes. */
function checkFit(op: string, { size }: Volume, windows: Windows, ceilMode: boolean): void {
  const { kernel, planes, depths, dilation } = windows;
  const padding = [depths.padding[0], ...planes.padding];
  const stride = [depths.stride[0], ...planes.stride];
  const isTooLarge = size.some((each, d) => {
    const steps = (each + 2 * padding[d]! - dilation[d]! * (kernel[d]! - 1) - 1) / stride[d]!;
    return (ceilMode ? Math.ceil(steps) : Math.floor(steps)) < 0;
  });
  if (isTooLarge) throw windowTooLarge(op, kernel, dilation, size);
}

/** Throws if a window is larger than the volume without its padding, as in PyTorch, which then computes no mean. */
function checkCover(op: string, { size }: Volume, kernel: Three): void {
  if (kernel.some((each, d) => each > size[d]!)) throw windowBeyondVolume(op, kernel, size);
}

/**
 * Returns the largest element under each window. Padding is never selected; of equal elements the first gets the
 * gradient. x is [batch, channels, depth, height, width], or lacks the batch.
 */
export function maxPool3d(x: Tensor, kernelSize: Triple, options: MaxPool3dOptions = {}): Tensor {
  const op = 'maxPool3d';
  const volume = volumeOf(op, x);
  checkOptions(op, options, maxPool3dOptions);
  const windows = windowsOf(op, kernelSize, options);
  const { kernel, planes, depths, dilation } = windows;
  const { ceilMode = false } = options;
  checkFit(op, volume, windows, ceilMode);
  return scope(() =>
    pooled(
      x,
      volume,
      (all) =>
        maxPool2d(all, [kernel[1], kernel[2]], { ...planes, dilation: [dilation[1], dilation[2]], ceilMode }),
      (rows) => maxPool2d(rows, [kernel[0], 1], { ...depths, dilation: [dilation[0], 1], ceilMode }),
    ),
  );
}

/**
 * Returns the result of maxPool3d, and an int64 tensor of the same shape with the position of each element in its
 * volume, counted depth by depth and row by row.
 */
export function maxPool3dWithIndices(
  x: Tensor,
  kernelSize: Triple,
  options: MaxPool3dOptions = {},
): [values: Tensor, indices: Tensor] {
  const op = 'maxPool3d';
  const { front, size } = volumeOf(op, x);
  checkOptions(op, options, maxPool3dOptions);
  const windows = windowsOf(op, kernelSize, options);
  const { kernel, planes, depths, dilation } = windows;
  const { ceilMode = false } = options;
  checkFit(op, { front, size }, windows, ceilMode);
  return scope(() => {
    const batch = countOf(front);
    const [flat, inPlane] = maxPool2dWithIndices(reshape(x, [batch, ...size]), [kernel[1], kernel[2]], {
      ...planes,
      dilation: [dilation[1], dilation[2]],
      ceilMode,
    });
    const [high, wide] = flat.shape.slice(-2) as [number, number];
    const rows = [batch, size[0], high * wide];
    const [out, inRows] = maxPool2dWithIndices(reshape(flat, rows), [kernel[0], 1], {
      ...depths,
      dilation: [dilation[0], 1],
      ceilMode,
    });
    const chosen = reshape(inRows, [batch, countOf(inRows.shape.slice(1))]);
    const depth = floorDivide(chosen, high * wide);
    const position = gather(reshape(inPlane, [batch, countOf(rows.slice(1))]), 1, chosen);
    const shape = [...front, out.shape[1]!, high, wide];
    return [reshape(out, shape), reshape(add(mul(depth, size[1] * size[2]), position), shape)];
  });
}

/** Computes in float32 for 16 bits, so that only the result is rounded to these. */
const wideFor = (x: Tensor, op: (wide: Tensor) => Tensor): Tensor =>
  isHalf(x.dtype) ? to(op(to(x, 'float32')), x.dtype) : op(x);

/**
 * Returns the mean under each window, which must not be larger than the volume. x is [batch, channels, depth, height,
 * width], or lacks the batch.
 */
export function avgPool3d(x: Tensor, kernelSize: Triple, options: AvgPool3dOptions = {}): Tensor {
  const op = 'avgPool3d';
  const volume = volumeOf(op, x);
  checkOptions(op, options, avgPool3dOptions);
  const windows = windowsOf(op, kernelSize, options);
  const { kernel, planes, depths } = windows;
  const { ceilMode = false, countIncludePad = true, divisorOverride = null } = options;
  checkCover(op, volume, kernel);
  const own = { ceilMode, countIncludePad };
  return scope(() =>
    wideFor(x, (wide) =>
      pooled(
        wide,
        volume,
        (all) =>
          avgPool2d(all, [kernel[1], kernel[2]], {
            ...planes,
            ...own,
            divisorOverride: divisorOverride === null ? null : 1,
          }),
        (rows) => avgPool2d(rows, [kernel[0], 1], { ...depths, ...own, divisorOverride }),
      ),
    ),
  );
}

/** [depth, rows, columns] of a result; null means the size of the input. One number applies to all. */
export type OutputSize3d =
  | number
  | readonly [depth: number | null, rows: number | null, columns: number | null];

/** Returns `outputSize` with the sizes of the volume in place of null. Throws if it is not valid. */
export function checkOutputSize3d(op: string, outputSize: OutputSize3d, size: Three = [1, 1, 1]): Three {
  const given: unknown = outputSize;
  const all = Array.isArray(given) ? given.map((each, d) => each ?? size[d]) : given;
  return sizesFor(`${op}: outputSize`, all as number, 3, 1) as Three;
}

/** Computes means over `outputSize` boxes that cover the volume; x as for avgPool3d. */
export function adaptiveAvgPool3d(x: Tensor, outputSize: OutputSize3d): Tensor {
  const op = 'adaptiveAvgPool3d';
  const volume = volumeOf(op, x);
  const out = checkOutputSize3d(op, outputSize, volume.size);
  return scope(() =>
    wideFor(x, (wide) =>
      pooled(
        wide,
        volume,
        (all) => adaptiveAvgPool2d(all, [out[1], out[2]]),
        (rows) => adaptiveAvgPool2d(rows, [out[0], null]),
      ),
    ),
  );
}

/** Takes the largest elements of `outputSize` boxes that cover the volume; x as for maxPool3d. */
export function adaptiveMaxPool3d(x: Tensor, outputSize: OutputSize3d): Tensor {
  const op = 'adaptiveMaxPool3d';
  const volume = volumeOf(op, x);
  const out = checkOutputSize3d(op, outputSize, volume.size);
  return scope(() =>
    pooled(
      x,
      volume,
      (all) => adaptiveMaxPool2d(all, [out[1], out[2]]),
      (rows) => adaptiveMaxPool2d(rows, [out[0], null]),
    ),
  );
}

/** Returns (Σ x ** p) ** (1 / p) over each window; x as for avgPool3d. */
export function lpPool3d(x: Tensor, p: number, kernelSize: Triple, options: LpPool3dOptions = {}): Tensor {
  const volume = volumeOf('lpPool3d', x);
  checkValue('lpPool3d: p', p, positive);
  checkOptions('lpPool3d', options, lpPool3dOptions);
  const { kernel } = windowsOf('lpPool3d', kernelSize, options);
  checkCover('lpPool3d', volume, kernel);
  return scope(() => rooted(avgPool3d(pow(x, p), kernel, options), countOf(kernel), p));
}
