// Resizing of signals, planes and volumes. Each dimension is resized on its own: every result element is a weighted sum
// of up to four elements along it, whose places and weights are computed on the host as PyTorch computes them.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, flag, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { withStrides } from '../../core/layout.ts';
import { allocate, type Storage } from '../../core/memory/storage.ts';
import { tableOn } from '../../core/memory/tables.ts';
import { countOf } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import { badOption, shown } from '../../errors.ts';
import { clone, contiguous, needsFloat32, requireFloat, requireTensor, to } from '../elementwise/convert.ts';
import { sizesOf } from '../indexing/lookup.ts';
import { adaptiveAvgPool2d } from '../layers/pool.ts';
import { reshape, squeeze, unsqueeze } from '../shape/views.ts';
import { badInterpolation } from './errors.ts';
import { storedPlaces, takenAt } from './places.ts';
import { adaptiveAvgPool3d } from './pooling/volumes.ts';
import { sizesFor } from './sizes.ts';

/** How interpolate() computes new elements. */
export type InterpolationMode = 'nearest' | 'nearest-exact' | 'linear' | 'bilinear' | 'bicubic' | 'area';

/** Options of interpolate(): `size` or `scaleFactor`. */
export interface InterpolateOptions {
  /** Sizes of the result: one for all dimensions, or a list. */
  readonly size?: number | readonly number[] | null;
  /** What sizes are multiplied by: one for all dimensions, or a list. The result is rounded down. */
  readonly scaleFactor?: number | readonly number[] | null;
  /**
   * 'nearest' copies the element whose position, rounded down, fits; 'nearest-exact' that whose centre is nearest.
   * 'linear' is for [batch, channels, length], 'bilinear' and 'bicubic' are for planes. 'area' takes means, as
   * adaptive average pooling does. Default 'nearest'.
   */
  readonly mode?: InterpolationMode;
  /** Whether the corners of input and result are the same positions; for linear and cubic modes. Default false. */
  readonly alignCorners?: boolean;
  /** Whether positions follow from the sizes, in place of `scaleFactor`. Default false. */
  readonly recomputeScaleFactor?: boolean;
}

export const interpolationModes = oneOf('nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic', 'area');
export const interpolateOptions = optionChecks<InterpolateOptions>({
  size: anything,
  scaleFactor: anything,
  mode: interpolationModes,
  alignCorners: flag,
  recomputeScaleFactor: flag,
});

/** Returns the scale factors for `rank` dimensions, checked. */
export function scalesFor(op: string, value: number | readonly number[], rank: number): readonly number[] {
  const all = typeof value === 'number' ? new Array<number>(rank).fill(value) : value;
  const fits =
    Array.isArray(all) && all.length === rank && all.every((scale) => scale > 0 && scale < Infinity);
  if (!fits) throw badOption(`${op}: scaleFactor`, `a number > 0, or a list of ${rank}`, shown(value));
  return all;
}

/** Throws unless exactly one of `size` and `scaleFactor` is given, and the options fit together. */
export function checkInterpolation(op: string, options: InterpolateOptions): void {
  const { size = null, scaleFactor = null, mode = 'nearest', alignCorners, recomputeScaleFactor } = options;
  if ((size === null) === (scaleFactor === null))
    throw badOption(`${op}: size and scaleFactor`, 'one of them', size === null ? 'none' : 'both');
  const isSmooth = mode === 'linear' || mode === 'bilinear' || mode === 'bicubic';
  if (alignCorners !== undefined && !isSmooth)
    throw badOption(`${op}: alignCorners with mode '${mode}'`, 'no such option', shown(alignCorners));
  if (recomputeScaleFactor && size !== null)
    throw badOption(`${op}: recomputeScaleFactor with size`, 'no such option', 'true');
}

/**
 * Resizes the dimensions behind the channels of x: [batch, channels, length], [batch, channels, height, width], or for
 * 'nearest' and 'nearest-exact' also [batch, channels, depth, height, width]. These two copy, and take uint8, too.
 * float16 and bfloat16 are computed in float32.
 */
export function interpolate(x: Tensor, options: InterpolateOptions): Tensor {
  requireTensor('interpolate', x);
  checkOptions('interpolate', options ?? {}, interpolateOptions);
  checkInterpolation('interpolate', options ?? {});
  const { size = null, scaleFactor = null, mode = 'nearest', alignCorners = false } = options;
  const rank = x.rank - 2;
  const ranks = {
    linear: [1],
    bilinear: [2],
    bicubic: [2],
    area: [1, 2, 3],
    nearest: [1, 2, 3],
    'nearest-exact': [1, 2, 3],
  };
  if (!ranks[mode].includes(rank)) throw badInterpolation(mode, x.shape);
  requireFloatUnlessCopied(x, mode);
  const before = x.shape.slice(2);
  let scales: readonly (number | null)[] = before.map(() => null);
  let after: readonly number[];
  if (size !== null) after = sizesFor('interpolate: size', size, rank, 1);
  else {
    scales = scalesFor('interpolate', scaleFactor!, rank);
    after = before.map((each, d) => Math.floor(each * scales[d]!));
    if (options.recomputeScaleFactor) scales = before.map(() => null);
  }
  if (x.shape.slice(1).includes(0) || after.some((each) => each < 1)) throw badInterpolation(mode, x.shape);
  if (mode === 'area') return area(x, after);
  return scope(() => {
    const isNearest = mode === 'nearest' || mode === 'nearest-exact';
    const wide = !isNearest && needsFloat32(x) ? to(x, 'float32') : x;
    const isFloat64 = x.dtype === 'float64';
    let out = wide;
    // The last dimension first, as PyTorch sums.
    for (let d = rank - 1; d >= 0; d--) {
      const line = { rank, size: before[d]!, out: after[d]!, scale: scales[d]!, alignCorners, isFloat64 };
      if (isNearest) {
        const places = nearest(line, mode === 'nearest-exact');
        if (places !== null) out = takenAt('interpolate', out, d + 2, places);
      } else {
        const taps = mode === 'bicubic' ? cubic(line) : linear(line);
        if (taps !== null) out = blended(out, d + 2, taps);
      }
    }
    return out === x ? clone(x) : to(out, x.dtype);
  });
}

function requireFloatUnlessCopied(x: Tensor, mode: InterpolationMode): void {
  const copies = (mode === 'nearest' || mode === 'nearest-exact') && x.dtype === 'uint8';
  if (!copies) requireFloat('interpolate', x);
}

function area(x: Tensor, after: readonly number[]): Tensor {
  if (after.length === 2) return adaptiveAvgPool2d(x, after as [number, number]);
  if (after.length === 3) return adaptiveAvgPool3d(x, after as [number, number, number]);
  return scope(() => squeeze(adaptiveAvgPool2d(unsqueeze(x, 2), [1, after[0]!]), 2));
}

/** One dimension that is resized. */
interface Line {
  /** The number of dimensions that are resized. */
  readonly rank: number;
  readonly size: number;
  readonly out: number;
  /** The scale factor that positions follow, or null if they follow the sizes. */
  readonly scale: number | null;
  readonly alignCorners: boolean;
  readonly isFloat64: boolean;
}

/** Weights and places of the elements that result elements are sums of, tap by tap. */
interface Taps {
  readonly places: readonly (readonly number[])[];
  readonly weights: readonly (readonly number[])[];
}

const stepOf = ({ size, out, scale }: Line): number => (scale === null ? size / out : 1 / scale);

/**
 * Returns the place of each result element, or null if the dimension does not change. As in PyTorch, planes whose size
 * stays or doubles ignore what the scale factor has beyond that; signals and volumes do not.
 */
function nearest(line: Line, isExact: boolean): number[] | null {
  const { rank, size, out } = line;
  if (size === out && line.scale === null) return null;
  const step = Math.fround(stepOf(line));
  const isPlane = rank === 2 && !isExact;
  const at = (o: number): number => {
    if (isPlane && out === size) return o;
    if (isPlane && out === 2 * size) return o >> 1;
    return Math.floor(Math.fround((isExact ? o + 0.5 : o) * step));
  };
  return Array.from({ length: out }, (_, o) => Math.min(at(o), size - 1));
}

/** Returns a function that gives the position in the input for each result element. */
function positions(line: Line, isCubic: boolean): (o: number) => number {
  const { size, out, alignCorners, isFloat64 } = line;
  const round = isFloat64 ? (value: number): number => value : Math.fround;
  if (alignCorners) {
    const step = out > 1 ? round((size - 1) / (out - 1)) : 0;
    return (o) => round(step * o);
  }
  const step = round(stepOf(line));
  return (o) => {
    const at = round(round(step * (o + 0.5)) - 0.5);
    return at < 0 && !isCubic ? 0 : at;
  };
}

function linear(line: Line): Taps | null {
  const { size, out } = line;
  // As in PyTorch, a dimension that keeps its size is not resized, whatever the scale factor says.
  if (size === out) return null;
  const at = positions(line, false);
  const [low, high, share]: number[][] = [[], [], []];
  for (let o = 0; o < out; o++) {
    const position = at(o);
    const first = Math.min(Math.floor(position), size - 1);
    low!.push(first);
    high!.push(Math.min(first + 1, size - 1));
    share!.push(Math.min(1, Math.max(0, position - first)));
  }
  return { places: [low!, high!], weights: [share!.map((s) => 1 - s), share!] };
}

const sharpness = -0.75;
/** Weight of an element at a distance of at most 1, then of more than 1. */
const inner = (d: number): number => ((sharpness + 2) * d - (sharpness + 3)) * d * d + 1;
const outer = (d: number): number =>
  ((sharpness * d - 5 * sharpness) * d + 8 * sharpness) * d - 4 * sharpness;

function cubic(line: Line): Taps | null {
  const { size, out } = line;
  const at = positions(line, true);
  const places: number[][] = [[], [], [], []];
  const weights: number[][] = [[], [], [], []];
  for (let o = 0; o < out; o++) {
    const position = at(o);
    const first = Math.min(Math.floor(position), size - 1);
    const share = Math.min(1, Math.max(0, position - first));
    for (const [i, weight] of [
      outer(share + 1),
      inner(share),
      inner(1 - share),
      outer(2 - share),
    ].entries()) {
      places[i]!.push(Math.min(size - 1, Math.max(0, first - 1 + i)));
      weights[i]!.push(weight);
    }
  }
  return { places, weights };
}

/** Returns memory with floats of `dtype`. The caller releases it, and only reads it. */
const storedWeights = (weights: readonly number[], dtype: 'float32' | 'float64', device: Device): Storage =>
  tableOn(device, dtype, dtype === 'float64' ? Float64Array.from(weights) : Float32Array.from(weights));

/** Returns out[…, o, …] = Σ weights[tap][o] · a[…, places[tap][o], …] along `dim`. */
function blended(a: Tensor, dim: number, { places, weights }: Taps): Tensor {
  const { device } = a;
  const dtype = a.dtype as 'float32' | 'float64';
  const out = empty(dtype, a.shape.with(dim, places[0]!.length), device);
  if (out.count === 0) return reshape(a, out.shape);
  const dense = contiguous(a);
  const count = places[0]!.length;
  const sizes = sizesOf(a.shape, dim, count, false);
  const shape = [sizes.outer, count, sizes.inner];
  const index = places.map((each) => storedPlaces(each, device));
  const factors = weights.map((each) => storedWeights(each, dtype, device));
  const perPlace = (tap: number) => withStrides(factors[tap]!.dense, [0, 1, 0]);
  const part = allocate(dtype, countOf(shape), device);
  const into = out.strided;
  for (const tap of places.keys()) {
    kernels().lookup({ out: part.dense, a: dense.strided, index: index[tap]!.dense }, sizes);
    if (tap === 0) kernels().map('mul', dtype, shape, into, part.dense, perPlace(tap));
    else kernels().map('mulAdd', dtype, shape, into, part.dense, perPlace(tap), into);
  }
  part.release();
  if (isRecording(dense)) {
    const target = dense.target!;
    const whole = a.shape;
    record('interpolate', out, [target], [...index, ...factors], (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        let all = zeros(whole, { dtype, device });
        for (const tap of places.keys()) {
          const at = own.saved(index[tap]!.dense, [count], null);
          const factor = own.saved(factors[tap]!.dense, [count], null);
          const wide = factor.reshape(whole.map((_, d) => (d === dim ? count : 1)));
          all = all.indexAdd(dim, at, own.grad.mul(wide));
        }
        own.send(target, all);
        return;
      }
      const sum = target.open();
      if (!target.isFilled) kernels().copy([target.count], sum, 0);
      const weighted = allocate(dtype, grad.memory.count, device);
      for (const tap of places.keys()) {
        kernels().map('mul', dtype, shape, weighted.dense, grad.dense, perPlace(tap));
        kernels().scatter({ out: sum, a: weighted.dense, index: index[tap]!.dense }, { ...sizes, op: 'add' });
      }
      weighted.release();
      target.close();
    });
  }
  for (const storage of [...index, ...factors]) storage.release();
  return out;
}
