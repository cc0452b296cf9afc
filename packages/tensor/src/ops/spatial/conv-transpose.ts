// Transposed convolutions: the kernels of conv2d with the roles of input and result exchanged.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { ConvSizes } from '../../backends/kernels.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, atLeastOne } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { withStrides } from '../../core/layout.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badOption, mixedDtypes, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, needsFloat32OnCpu, requireFloat, requireOperand, to } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { conv2d } from '../layers/conv.ts';
import { weightGradient } from '../layers/conv-gradients.ts';
import type { Pair } from '../layers/window.ts';
import { squeeze, unsqueeze } from '../shape/views.ts';
import { badConvolution, noOutput } from './errors.ts';
import { sizesFor } from './sizes.ts';

/** Options of convTranspose2d(). */
export interface ConvTransposeOptions {
  /** Distance between the windows that neighbours of the input add to. Default 1. */
  readonly stride?: Pair;
  /** Rows and columns that are dropped on each side. Default 0. */
  readonly padding?: Pair;
  /** Rows and columns added behind; less than the stride or the dilation. Default 0. */
  readonly outputPadding?: Pair;
  /** Groups of channels; a group of output channels reads only its group of input channels. Default 1. */
  readonly groups?: number;
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: Pair;
}

/** As ConvTransposeOptions, for one dimension. */
export interface ConvTranspose1dOptions {
  /** Distance in the output between two elements of the input. Default 1. */
  readonly stride?: number;
  /** Elements that are cut off on both sides of the output. Default 0. */
  readonly padding?: number;
  /** Elements that are added on one side of the output. Default 0. */
  readonly outputPadding?: number;
  /** Number of groups of channels that are computed apart from each other. Default 1. */
  readonly groups?: number;
  /** Distance between two elements of the kernel. Default 1. */
  readonly dilation?: number;
}

/** Values are checked together with the sizes of the operands. */
export const convTransposeOptions = optionChecks<ConvTransposeOptions>({
  stride: anything,
  padding: anything,
  outputPadding: anything,
  groups: atLeastOne,
  dilation: anything,
});

/** Options of a transposed convolution, as lists. */
export interface TransposedSteps {
  readonly stride: readonly number[];
  readonly padding: readonly number[];
  readonly outputPadding: readonly number[];
  readonly dilation: readonly number[];
}

/** The options of a transposed convolution of any number of dimensions. */
interface AnySteps {
  readonly stride?: number | readonly number[];
  readonly padding?: number | readonly number[];
  readonly outputPadding?: number | readonly number[];
  readonly dilation?: number | readonly number[];
}

/** Returns the options for `count` dimensions, checked. */
export function transposedSteps(op: string, options: AnySteps, count: number): TransposedSteps {
  const stride = sizesFor(`${op}: stride`, options.stride ?? 1, count, 1);
  const padding = sizesFor(`${op}: padding`, options.padding ?? 0, count, 0);
  const dilation = sizesFor(`${op}: dilation`, options.dilation ?? 1, count, 1);
  const outputPadding = sizesFor(`${op}: outputPadding`, options.outputPadding ?? 0, count, 0);
  if (outputPadding.some((size, d) => size >= Math.max(stride[d]!, dilation[d]!)))
    throw badOption(`${op}: outputPadding`, 'less than the stride or the dilation', shown(outputPadding));
  return { stride, padding, outputPadding, dilation };
}

/** Throws unless the operands of a transposed convolution of tensors of `rank`, with the batch, fit together. */
export function checkOperands(
  op: string,
  rank: number,
  x: Tensor,
  w: Tensor,
  b: Tensor | null,
  groups: number,
): void {
  requireOperand(op, 'x', x);
  requireOperand(op, 'w', w);
  if (b !== null) requireOperand(op, 'b', b);
  requireFloat(op, x);
  for (const other of [w, b])
    if (other && other.dtype !== x.dtype) throw mixedDtypes(op, x.dtype, other.dtype);
  const channels = x.shape.at(1 - rank);
  const fits =
    (x.rank === rank || x.rank === rank - 1) &&
    w.rank === rank &&
    x.shape.slice(1 - rank).every((size) => size > 0) &&
    w.count > 0 &&
    channels === w.shape[0] &&
    w.shape[0]! % groups === 0 &&
    (b === null || (b.rank === 1 && b.shape[0] === w.shape[1]! * groups));
  if (fits) return;
  const names = ['length', 'kernel', 'height, width', 'kernel height, kernel width'];
  const ofVolume = ['depth, height, width', 'kernel depth, kernel height, kernel width'];
  const [dims, window] = rank === 5 ? ofVolume : rank === 4 ? names.slice(2) : names;
  throw badConvolution(
    op,
    dims!,
    `[in, out / ${groups}, ${window}]`,
    x.shape,
    w.shape,
    b?.shape ?? null,
    groups,
  );
}

/** Returns the sizes of the result's dimensions besides batch and channels. Throws if one is below 1. */
export function outSizesOf(op: string, x: Tensor, w: Tensor, steps: TransposedSteps): number[] {
  const { stride, padding, outputPadding, dilation } = steps;
  const sizes = stride.map((step, d) => {
    const [size, kernel] = [x.shape.at(d - stride.length)!, w.shape[d + 2]!];
    return (size - 1) * step - 2 * padding[d]! + dilation[d]! * (kernel - 1) + outputPadding[d]! + 1;
  });
  if (sizes.some((size) => size < 1)) throw noOutput(op, sizes);
  return sizes;
}

/** Returns the sizes of the convolution whose gradient this is: its input is our result. */
function sizesOf(op: string, x: Tensor, w: Tensor, steps: TransposedSteps, groups: number): ConvSizes {
  const { stride, padding, dilation } = steps;
  const [batch, , outHeight, outWidth] = x.shape as [number, number, number, number];
  const [ins, outChannels, kernelHeight, kernelWidth] = w.shape as [number, number, number, number];
  const [height, width] = outSizesOf(op, x, w, steps) as [number, number];
  const window = {
    height,
    width,
    outHeight,
    outWidth,
    kernelHeight,
    kernelWidth,
    strideY: stride[0]!,
    strideX: stride[1]!,
    dilationY: dilation[0]!,
    dilationX: dilation[1]!,
    padTop: padding[0]!,
    padLeft: padding[1]!,
  };
  return { batch, groups, inChannels: outChannels, outChannels: ins / groups, window };
}

/**
 * Adds x [batch, in, height, width] times w [in, out / groups, kernel height, kernel width] to the window that each
 * element of x spans in the result, then b [out] unless it is null: the gradient of conv2d with respect to its input.
 * Returns [batch, out, (height − 1) · stride − 2 · padding + dilation · (kernel height − 1) + outputPadding + 1, …]. x,
 * and the result, may lack the batch. float16 and bfloat16 are summed in float32.
 */
export function convTranspose2d(
  x: Tensor,
  w: Tensor,
  b: Tensor | null = null,
  options: ConvTransposeOptions = {},
): Tensor {
  const lowered = recast('low', [x, w, b], (...wide) =>
    convTranspose2d(wide[0]!, wide[1]!, wide[2], options),
  );
  if (lowered) return lowered;
  const op = 'convTranspose2d';
  checkOptions(op, options, convTransposeOptions);
  const { groups = 1 } = options;
  checkOperands(op, 4, x, w, b, groups);
  const steps = transposedSteps(op, options, 2);
  jointDevice(op, x, w, b);
  return scope(() => {
    if (x.rank === 4) return converted(op, x, w, b, steps, groups);
    return squeeze(converted(op, unsqueeze(x, 0), w, b, steps, groups), 0);
  });
}

/** Does the same as convTranspose2d, for x [batch, in, length] and w [in, out / groups, kernel]. */
export function convTranspose1d(
  x: Tensor,
  w: Tensor,
  b: Tensor | null = null,
  options: ConvTranspose1dOptions = {},
): Tensor {
  const lowered = recast('low', [x, w, b], (...wide) =>
    convTranspose1d(wide[0]!, wide[1]!, wide[2], options),
  );
  if (lowered) return lowered;
  const op = 'convTranspose1d';
  checkOptions(op, options, convTransposeOptions);
  const { groups = 1 } = options;
  checkOperands(op, 3, x, w, b, groups);
  const { stride, padding, outputPadding, dilation } = transposedSteps(op, options, 1);
  jointDevice(op, x, w, b);
  const steps: TransposedSteps = {
    stride: [1, stride[0]!],
    padding: [0, padding[0]!],
    outputPadding: [0, outputPadding[0]!],
    dilation: [1, dilation[0]!],
  };
  return scope(() => {
    const planes = unsqueeze(x.rank === 3 ? x : unsqueeze(x, 0), 2);
    const out = squeeze(converted(op, planes, unsqueeze(w, 2), b, steps, groups), 2);
    return x.rank === 3 ? out : squeeze(out, 0);
  });
}

/** Computes in the dtype of x, or in float32 where the kernels do not take it. */
function converted(
  op: string,
  x: Tensor,
  w: Tensor,
  b: Tensor | null,
  steps: TransposedSteps,
  groups: number,
): Tensor {
  if (!needsFloat32OnCpu(x)) return computed(op, x, w, b, steps, groups);
  const [wideX, wideW, wideB] = [to(x, 'float32'), to(w, 'float32'), b && to(b, 'float32')];
  return to(computed(op, wideX, wideW, wideB, steps, groups), x.dtype);
}

function computed(
  op: string,
  x: Tensor,
  w: Tensor,
  b: Tensor | null,
  steps: TransposedSteps,
  groups: number,
): Tensor {
  const sizes = sizesOf(op, x, w, steps, groups);
  const { batch, window } = sizes;
  const outChannels = sizes.inChannels * groups;
  const dense = contiguous(x);
  const weights = contiguous(w);
  const [input, weight] = [dense.strided, weights.strided];
  const out = empty(x.dtype, [batch, outChannels, window.height, window.width], x.device);
  const byChannel = [batch, outChannels, window.height * window.width];
  kernels().conv2dGradInput({ gradX: out.strided, grad: input, weight }, { ...sizes, accumulate: false });
  if (b) {
    const values = withStrides(b.strided, [0, b.strides[0]!, 0]);
    kernels().map('add', out.dtype, byChannel, out.strided, out.strided, values);
  }
  if (!isRecording(dense, weights, b)) return out;
  const [toX, toW, toB] = [dense.target, weights.target, b?.target ?? null];
  const saved = [...(toW ? [dense.storage] : []), ...(toX ? [weights.storage] : [])];
  const [xShape, wShape] = [x.shape, w.shape];
  return record(op, out, [toX, toW, toB], saved, (grad, graph) => {
    if (graph) {
      const own = graphOf(graph);
      const { strideY, strideX, dilationY, dilationX, padTop, padLeft } = window;
      if (toB) own.send(toB, own.grad.sum([0, 2, 3]));
      if (toW)
        own.send(
          toW,
          weightGradient(conv2d, own.grad, own.saved(input, xShape, toX), wShape, groups, window),
        );
      if (toX) {
        const all = conv2d(own.grad, own.saved(weight, wShape, toW), null, {
          stride: [strideY, strideX],
          padding: [padTop, padLeft],
          dilation: [dilationY, dilationX],
          groups,
        });
        own.send(toX, all.narrow(2, 0, xShape[2]!).narrow(3, 0, xShape[3]!));
      }
      return;
    }
    if (toB) {
      const into = toB.begin();
      kernels().reduce('sum', byChannel, withStrides(into.dense, [0, 1, 0]), grad.dense);
      toB.end(into);
    }
    if (toW) {
      kernels().conv2dGradWeight(
        { gradWeight: toW.open(), grad: input, x: grad.dense },
        { ...sizes, accumulate: toW.isFilled },
      );
      toW.close();
    }
    if (toX) {
      const into = toX.begin();
      kernels().conv2d({ out: into.dense, x: grad.dense, weight }, sizes);
      toX.end(into);
    }
  });
}
