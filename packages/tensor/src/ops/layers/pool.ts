// Pooling over planes. Every kind of averaging is a mean over boxes with its own table of bins: begin, end
// and divisor of each output row and column.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { PoolSizes, Window } from '../../backends/kernels.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, atLeastOne, flag } from '../../checks/value-checks.ts';
import { zeros } from '../../core/creation.ts';
import { checkListed } from '../../core/host-numbers.ts';
import type { Storage } from '../../core/memory/storage.ts';
import { countOf, type Shape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import { badOption, badPlanes, shown, windowTooLarge } from '../../errors.ts';
import { contiguous, inFloat32, needsFloat32OnCpu, requireFloat, to } from '../elementwise/convert.ts';
import { storedPositions } from '../spatial/positions.ts';
import { type Pair, pairOf, windowOf } from './window.ts';

/** Options that all poolings share. */
export interface PoolOptions {
  /** Default: the size of the window. */
  readonly stride?: Pair;
  /** Rows and columns on each side; at most half of the window. Default 0. */
  readonly padding?: Pair;
  /** Whether to include windows that reach beyond the end. Default false. */
  readonly ceilMode?: boolean;
}

/** Options of maxPool2d(). */
export interface MaxPoolOptions extends PoolOptions {
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: Pair;
}

/** Options of avgPool2d(). */
export interface AvgPoolOptions extends PoolOptions {
  /** Whether padding counts as elements that are 0. Default true. */
  readonly countIncludePad?: boolean;
  /** Divisor of the sums, instead of the number of elements; null, the default, means that number. */
  readonly divisorOverride?: number | null;
}

const poolChecks = { stride: anything, padding: anything, ceilMode: flag };
/** Checks of the options of pools, also over volumes. Sizes are checked together with those of the operand. */
export const maxPoolChecks = { ...poolChecks, dilation: anything };
export const avgPoolChecks = {
  ...poolChecks,
  countIncludePad: flag,
  divisorOverride: {
    expected: 'an integer ≥ 1 or null',
    fits: (value: unknown) => value === null || atLeastOne.fits(value),
  },
};
export const maxPoolOptions = optionChecks<MaxPoolOptions>(maxPoolChecks);
export const avgPoolOptions = optionChecks<AvgPoolOptions>(avgPoolChecks);

function checkPlanes(op: string, x: Tensor): readonly [number, number] {
  requireFloat(op, x);
  const plane = x.shape.slice(-2) as [number, number];
  if ((x.rank !== 3 && x.rank !== 4) || countOf(plane) === 0) throw badPlanes(op, x.shape);
  return plane;
}

/** Checks the sizes of windows and steps, and returns them in the form that windowOf accepts. */
export function checkPoolSizes(op: string, kernelSize: Pair, options: MaxPoolOptions) {
  const kernel = pairOf(`${op}: kernelSize`, kernelSize, 1);
  const stride = pairOf(`${op}: stride`, options.stride ?? kernel, 1);
  const dilation = pairOf(`${op}: dilation`, options.dilation ?? 1, 1);
  const pad = pairOf(`${op}: padding`, options.padding ?? 0, 0);
  if (pad.some((size, d) => 2 * size > kernel[d]!))
    throw badOption(`${op}: padding`, `at most half of the window [${kernel.join(', ')}]`, shown(pad));
  const padding = pad.map((before) => ({ before, total: 2 * before }));
  return { kernel, stride, dilation, padding, ceilMode: options.ceilMode ?? false };
}

function poolWindow(op: string, x: Tensor, kernelSize: Pair, options: MaxPoolOptions): Window {
  const plane = checkPlanes(op, x);
  return windowOf(op, plane, checkPoolSizes(op, kernelSize, options));
}

/** Returns whether some window has all of its elements in the padding, which is possible with dilation. */
const missesPlane = (w: Window): boolean =>
  misses(w.height, w.outHeight, w.kernelHeight, w.strideY, w.dilationY, w.padTop) ||
  misses(w.width, w.outWidth, w.kernelWidth, w.strideX, w.dilationX, w.padLeft);

/** Does the same as missesPlane, in one direction. */
function misses(
  size: number,
  out: number,
  kernel: number,
  stride: number,
  dilation: number,
  pad: number,
): boolean {
  for (let o = 0; o < out; o++) {
    const begin = o * stride - pad;
    const first = begin < 0 ? begin + Math.ceil(-begin / dilation) * dilation : begin;
    if (first >= size || first > begin + (kernel - 1) * dilation) return true;
  }
  return false;
}

/**
 * Returns the largest element under each window. Padding is never selected; of equal elements the first gets the
 * gradient. x is [batch, channels, height, width], or lacks the batch.
 */
export function maxPool2d(x: Tensor, kernelSize: Pair, options: MaxPoolOptions = {}): Tensor {
  const [out, positions] = maxPool2dWithIndices(x, kernelSize, options);
  positions.dispose();
  return out;
}

/**
 * Returns the result of maxPool2d, and an int64 tensor of the same shape with the position of each element in its
 * plane, counted row by row.
 */
export function maxPool2dWithIndices(
  x: Tensor,
  kernelSize: Pair,
  options: MaxPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  checkOptions('maxPool2d', options, maxPoolOptions);
  const window = poolWindow('maxPool2d', x, kernelSize, options);
  if (missesPlane(window)) {
    const { kernelHeight, kernelWidth, dilationY, dilationX, height, width } = window;
    throw windowTooLarge('maxPool2d', [kernelHeight, kernelWidth], [dilationY, dilationX], [height, width]);
  }
  if (!needsFloat32OnCpu(x)) return maxPooled(x, window);
  const wide = to(x, 'float32');
  const [largest, indices] = maxPooled(wide, window);
  const out = to(largest, x.dtype);
  wide.dispose();
  largest.dispose();
  return [out, indices];
}

function maxPooled(x: Tensor, window: Window): [values: Tensor, indices: Tensor] {
  const front = x.shape.slice(0, -2);
  const planes = countOf(front);
  const dense = contiguous(x);
  const out = empty(x.dtype, [...front, window.outHeight, window.outWidth], x.device);
  const indices = empty('int64', out.shape, x.device);
  const positions = indices.storage;
  kernels().maxPool({ out: out.strided, positions: positions.dense, a: dense.strided }, { planes, window });
  if (isRecording(dense)) {
    const target = dense.target!;
    const sizes = {
      outer: planes,
      count: window.outHeight * window.outWidth,
      size: window.height * window.width,
      inner: 1,
      perElement: true,
    };
    const { shape } = x;
    const outShape = [planes, sizes.count];
    record('maxPool2d', out, [target], [positions], (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        const index = own.saved(positions.dense, outShape, null);
        const flat = zeros([planes, sizes.size], { dtype: own.grad.dtype, device: own.grad.device });
        own.send(target, flat.scatterAdd(1, index, own.grad.reshape(outShape)).reshape(shape));
        return;
      }
      const into = target.open();
      if (!target.isFilled) kernels().copy([target.count], into, 0);
      kernels().scatter({ out: into, a: grad.dense, index: positions.dense }, { ...sizes, op: 'add' });
      target.close();
    });
  }
  if (dense !== x) dense.dispose();
  return [out, indices];
}

type Bin = readonly [begin: number, end: number, divisor: number];

/** Returns memory with bins for the kernels. The caller releases it. */
const stored = (bins: readonly Bin[], device: Device): Storage => storedPositions(bins.flat(), device);

/** Returns the gradient of averaged(), whose own gradient is averaged(). */
function spreadOut(
  op: string,
  grad: Tensor,
  shape: Shape,
  rows: readonly Bin[],
  cols: readonly Bin[],
): Tensor {
  const [height, width] = shape.slice(-2) as [number, number];
  const sizes: PoolSizes = {
    ...{ planes: countOf(shape.slice(0, -2)), height, width },
    ...{ outHeight: rows.length, outWidth: cols.length },
  };
  const bins = stored([...rows, ...cols], grad.device);
  const dense = contiguous(grad);
  const out = empty(grad.dtype, shape, grad.device);
  kernels().avgPoolGrad({ gradIn: out.strided, grad: dense.strided, bins: bins.dense }, sizes);
  if (isRecording(dense)) {
    const target = dense.target!;
    record(op, out, [target], [bins], (given, graph) => {
      if (graph) {
        graphOf(graph).send(target, averaged(op, graphOf(graph).grad, rows, cols));
        return;
      }
      const into = target.begin();
      kernels().avgPool({ out: into.dense, a: given.dense, bins: bins.dense }, sizes);
      target.end(into);
    });
  }
  bins.release();
  if (dense !== grad) dense.dispose();
  return out;
}

/** Computes means over the boxes that `rows` and `cols` span. */
function averaged(op: string, x: Tensor, rows: readonly Bin[], cols: readonly Bin[]): Tensor {
  if (needsFloat32OnCpu(x)) return inFloat32(x, (wide) => averaged(op, wide, rows, cols));
  const front = x.shape.slice(0, -2);
  const [height, width] = x.shape.slice(-2) as [number, number];
  const [outHeight, outWidth] = [rows.length, cols.length];
  const sizes: PoolSizes = { planes: countOf(front), height, width, outHeight, outWidth };
  const bins = stored([...rows, ...cols], x.device);
  const dense = contiguous(x);
  const out = empty(x.dtype, [...front, outHeight, outWidth], x.device);
  kernels().avgPool({ out: out.strided, a: dense.strided, bins: bins.dense }, sizes);
  if (isRecording(dense)) {
    const target = dense.target!;
    record(op, out, [target], [bins], (grad, graph) => {
      if (graph) {
        graphOf(graph).send(
          target,
          spreadOut(op, graphOf(graph).grad, [...front, height, width], rows, cols),
        );
        return;
      }
      const into = target.begin();
      kernels().avgPoolGrad({ gradIn: into.dense, grad: grad.dense, bins: bins.dense }, sizes);
      target.end(into);
    });
  }
  bins.release();
  if (dense !== x) dense.dispose();
  return out;
}

/** Returns the mean under each window. x is [batch, channels, height, width], or lacks the batch. */
export function avgPool2d(x: Tensor, kernelSize: Pair, options: AvgPoolOptions = {}): Tensor {
  checkOptions('avgPool2d', options, avgPoolOptions);
  const w = poolWindow('avgPool2d', x, kernelSize, options);
  const { countIncludePad = true, divisorOverride = null } = options;
  const binsOf = (size: number, out: number, kernel: number, stride: number, pad: number): Bin[] =>
    Array.from({ length: out }, (_, o) => {
      const start = o * stride - pad;
      const stop = Math.min(start + kernel, size + pad);
      const begin = Math.max(start, 0);
      const end = Math.min(stop, size);
      return [begin, end, countIncludePad ? stop - start : end - begin];
    });
  const divided = (bins: Bin[], divisor: number): Bin[] =>
    divisorOverride === null ? bins : bins.map(([begin, end]): Bin => [begin, end, divisor]);
  const rows = binsOf(w.height, w.outHeight, w.kernelHeight, w.strideY, w.padTop);
  const cols = binsOf(w.width, w.outWidth, w.kernelWidth, w.strideX, w.padLeft);
  return averaged('avgPool2d', x, divided(rows, divisorOverride ?? 1), divided(cols, 1));
}

/** [rows, columns] of a result; null means the size of the input. One number applies to both. */
export type OutputSize = number | readonly [rows: number | null, columns: number | null];

/** Returns `outputSize` with the sizes of `plane` in place of null. Throws if it is not valid. */
export function checkOutputSize(
  op: string,
  outputSize: OutputSize,
  plane: readonly [number, number] = [1, 1],
): readonly [number, number] {
  const given = typeof outputSize === 'number' ? outputSize : ownSizes(op, outputSize, plane);
  return pairOf(`${op}: outputSize`, given, 1);
}

/** Computes means over `outputSize` boxes that cover the plane; x as for avgPool2d. */
export function adaptiveAvgPool2d(x: Tensor, outputSize: OutputSize): Tensor {
  const op = 'adaptiveAvgPool2d';
  const plane = checkPlanes(op, x);
  const out = checkOutputSize(op, outputSize, plane);
  for (const size of out) checkListed(size, 2 ** 24);
  const [rows, cols] = plane.map((size, d) =>
    Array.from({ length: out[d]! }, (_, o): Bin => {
      const begin = Math.floor((o * size) / out[d]!);
      const end = Math.ceil(((o + 1) * size) / out[d]!);
      return [begin, end, end - begin];
    }),
  );
  return averaged(op, x, rows!, cols!);
}

function ownSizes(op: string, sizes: OutputSize & object, plane: readonly [number, number]): Pair {
  if (!Array.isArray(sizes) || sizes.length !== 2)
    throw badOption(
      `${op}: outputSize`,
      'an integer ≥ 1, or two, or null for a size of the input',
      shown(sizes),
    );
  return [sizes[0] ?? plane[0], sizes[1] ?? plane[1]];
}
