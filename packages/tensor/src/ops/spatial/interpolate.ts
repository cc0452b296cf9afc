// Resizing of signals, planes and volumes. Each dimension is resized on its own: every result element is a weighted sum
// of elements along it, whose positions and weights are those of taps.ts.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, flag, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { zeros } from '../../core/creation.ts';
import { checkListed } from '../../core/host-numbers.ts';
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
import { adaptiveAvgPool3d } from './pooling/volumes.ts';
import { storedPositions, takenAt } from './positions.ts';
import { sizesFor } from './sizes.ts';
import { covered, cubic, linear, nearest, type Taps } from './taps.ts';

/** How interpolate() computes new elements. */
export type InterpolationMode =
  | 'nearest'
  | 'nearest-exact'
  | 'linear'
  | 'bilinear'
  | 'trilinear'
  | 'bicubic'
  | 'area';

/** Options of interpolate(): `size` or `scaleFactor`. */
export interface InterpolateOptions {
  /** Sizes of the result: one for all dimensions, or a list. */
  readonly size?: number | readonly number[] | null;
  /** Factors of the sizes: one for all dimensions, or a list. The result is rounded down. */
  readonly scaleFactor?: number | readonly number[] | null;
  /**
   * 'nearest' copies the element whose position, rounded down, fits; 'nearest-exact' that whose centre is nearest.
   * 'linear' is for [batch, channels, length], 'bilinear' and 'bicubic' are for planes, 'trilinear' is for volumes.
   * 'area' takes means, as adaptive average pooling does. Default 'nearest'.
   */
  readonly mode?: InterpolationMode;
  /** Whether the corners of input and result are the same positions; for linear and cubic modes. Default false. */
  readonly alignCorners?: boolean;
  /** Whether positions follow from the sizes, in place of `scaleFactor`. Default false. */
  readonly recomputeScaleFactor?: boolean;
  /**
   * Whether an element of a smaller plane is a weighted mean of all elements that it covers; for 'bilinear' and
   * 'bicubic'. Default false.
   */
  readonly antialias?: boolean;
}

export const interpolationModes = oneOf(
  ...['nearest', 'nearest-exact', 'linear', 'bilinear', 'trilinear', 'bicubic', 'area'],
);
export const interpolateOptions = optionChecks<InterpolateOptions>({
  size: anything,
  scaleFactor: anything,
  mode: interpolationModes,
  alignCorners: flag,
  recomputeScaleFactor: flag,
  antialias: flag,
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
  const isSmooth = mode === 'bicubic' || mode.endsWith('linear');
  if (alignCorners !== undefined && !isSmooth)
    throw badOption(`${op}: alignCorners with mode '${mode}'`, 'no such option', shown(alignCorners));
  if (recomputeScaleFactor && size !== null)
    throw badOption(`${op}: recomputeScaleFactor with size`, 'no such option', 'true');
  if (options.antialias && mode !== 'bilinear' && mode !== 'bicubic')
    throw badOption(`${op}: antialias with mode '${mode}'`, "mode 'bilinear' or 'bicubic'", 'true');
}

/**
 * Resizes the dimensions behind the channels of x: [batch, channels, length], [batch, channels, height, width] or
 * [batch, channels, depth, height, width]. 'nearest' and 'nearest-exact' copy, and take uint8, too. float16 and
 * bfloat16 are computed in float32.
 */
export function interpolate(x: Tensor, options: InterpolateOptions): Tensor {
  requireTensor('interpolate', x);
  checkOptions('interpolate', options ?? {}, interpolateOptions);
  checkInterpolation('interpolate', options ?? {});
  const { size = null, scaleFactor = null, mode = 'nearest' } = options;
  const { alignCorners = false, antialias = false } = options;
  const rank = x.rank - 2;
  const ranks = {
    linear: [1],
    bilinear: [2],
    trilinear: [3],
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
  for (const each of after) checkListed(each, 2 ** 24);
  return scope(() => {
    const isNearest = mode === 'nearest' || mode === 'nearest-exact';
    const wide = !isNearest && needsFloat32(x) ? to(x, 'float32') : x;
    const isFloat64 = x.dtype === 'float64';
    let out = wide;
    // The last dimension first, as PyTorch sums.
    for (let d = rank - 1; d >= 0; d--) {
      const line = { rank, size: before[d]!, out: after[d]!, scale: scales[d]!, alignCorners, isFloat64 };
      if (isNearest) {
        const positions = nearest(line, mode === 'nearest-exact');
        if (positions !== null) out = takenAt('interpolate', out, d + 2, positions);
      } else {
        const taps = antialias
          ? covered(line, mode === 'bicubic')
          : mode === 'bicubic'
            ? cubic(line)
            : linear(line);
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

/** Returns memory with floats of `dtype`. The caller releases it, and only reads it. */
const storedWeights = (weights: readonly number[], dtype: 'float32' | 'float64', device: Device): Storage =>
  tableOn(device, dtype, dtype === 'float64' ? Float64Array.from(weights) : Float32Array.from(weights));

/** Returns out[…, o, …] = Σ weights[tap][o] · a[…, indices[tap][o], …] along `dim`. */
function blended(a: Tensor, dim: number, { indices, weights }: Taps): Tensor {
  const { device } = a;
  const dtype = a.dtype as 'float32' | 'float64';
  const out = empty(dtype, a.shape.with(dim, indices[0]!.length), device);
  if (out.count === 0) return reshape(a, out.shape);
  const dense = contiguous(a);
  const count = indices[0]!.length;
  const sizes = sizesOf(a.shape, dim, count, false);
  const shape = [sizes.outer, count, sizes.inner];
  const index = indices.map((each) => storedPositions(each, device));
  const factors = weights.map((each) => storedWeights(each, dtype, device));
  const perPlace = (tap: number) => withStrides(factors[tap]!.dense, [0, 1, 0]);
  const part = allocate(dtype, countOf(shape), device);
  const into = out.strided;
  for (const tap of indices.keys()) {
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
        for (const tap of indices.keys()) {
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
      for (const tap of indices.keys()) {
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
