// Convolution over planes, as cross-correlation: the kernel is not mirrored. In backward the gradients of
// bias and weight are final before that of the input is computed, so that DDP can send them meanwhile.
import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import type { ConvSizes } from '../../backends/kernels.ts';
import { badConv1d } from '../../checks/op-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, atLeastOne } from '../../checks/value-checks.ts';
import { withStrides } from '../../core/layout.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badConv, badOption, mixedDtypes, shown } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, needsFloat32OnCpu, requireFloat, requireOperand, to } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { squeeze, unsqueeze } from '../shape/views.ts';
import { inputGradient, weightGradient } from './conv-gradients.ts';
import { type Pair, pairOf, windowOf } from './window.ts';

/** Options of conv2d(). */
export interface ConvOptions {
  /** Default 1. */
  readonly stride?: Pair;
  /** Zeros on each side; 'valid' is 0, 'same' keeps height and width (stride 1 only). Default 0. */
  readonly padding?: Pair | 'same' | 'valid';
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: Pair;
  /** Groups of channels; a group of output channels reads only its group of input channels. Default 1. */
  readonly groups?: number;
}

/** Values are checked together with the sizes of the operands. */
export const convOptions = optionChecks<ConvOptions>({
  stride: anything,
  padding: anything,
  dilation: anything,
  groups: atLeastOne,
});

type Paddings = readonly { readonly before: number; readonly total: number }[];

/** Returns the padding on each side, or null for 'same'. Throws for values that are no padding. */
export function checkPadding(
  op: string,
  padding: ConvOptions['padding'] & {},
): readonly [number, number] | null {
  if (padding === 'same') return null;
  if (typeof padding === 'string' && padding !== 'valid')
    throw badOption(`${op}: padding`, "'same', 'valid', an integer ≥ 0, or two", shown(padding));
  return pairOf(`${op}: padding`, padding === 'valid' ? 0 : padding, 0);
}

function paddings(
  padding: ConvOptions['padding'] & {},
  kernel: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): Paddings {
  const pair = checkPadding('conv2d', padding);
  if (pair === null) {
    if (stride.some((step) => step !== 1))
      throw badOption("conv2d: stride with padding 'same'", '1', shown(stride));
    return kernel.map((size, d) => {
      const total = dilation[d]! * (size - 1);
      return { before: Math.floor(total / 2), total };
    });
  }
  return pair.map((before) => ({ before, total: 2 * before }));
}

function requireOperands(op: string, x: Tensor, w: Tensor, b: Tensor | null): void {
  requireOperand(op, 'x', x);
  requireOperand(op, 'w', w);
  if (b !== null) requireOperand(op, 'b', b);
}

function checkedSizes(x: Tensor, w: Tensor, b: Tensor | null, options: ConvOptions): ConvSizes {
  checkOptions('conv2d', options, convOptions);
  const { groups = 1 } = options;
  const stride = pairOf('conv2d: stride', options.stride ?? 1, 1);
  const dilation = pairOf('conv2d: dilation', options.dilation ?? 1, 1);
  requireFloat('conv2d', x);
  for (const other of [w, b])
    if (other && other.dtype !== x.dtype) throw mixedDtypes('conv2d', x.dtype, other.dtype);
  const fits =
    x.rank === 4 &&
    w.rank === 4 &&
    w.count > 0 &&
    x.shape[1] === w.shape[1]! * groups &&
    w.shape[0]! % groups === 0 &&
    (b === null || (b.rank === 1 && b.shape[0] === w.shape[0]));
  if (!fits) throw badConv(x.shape, w.shape, b?.shape ?? null, groups);
  const [batch, , height, width] = x.shape as [number, number, number, number];
  const [outAll, inChannels, ...kernel] = w.shape as [number, number, number, number];
  const padding = paddings(options.padding ?? 0, kernel, stride, dilation);
  const window = windowOf('conv2d', [height, width], { kernel, stride, dilation, padding, ceilMode: false });
  return { batch, groups, inChannels, outChannels: outAll / groups, window };
}

/**
 * Convolves x [batch, in, height, width] with w [out, in / groups, kernel height, kernel width], adds b [out] unless it
 * is null, and returns [batch, out, …]. x, and the result, may lack the batch. float16 and bfloat16 are summed in
 * float32.
 */
export function conv2d(x: Tensor, w: Tensor, b: Tensor | null = null, options: ConvOptions = {}): Tensor {
  const lowered = recast('low', [x, w, b], (...wide) => conv2d(wide[0]!, wide[1]!, wide[2], options));
  if (lowered) return lowered;
  requireOperands('conv2d', x, w, b);
  if (x.rank === 3 && x.shape[0] === w.shape[1]! * (options.groups ?? 1))
    return withDimension(x, 0, (batch) => conv2d(batch, w, b, options));
  const sizes = checkedSizes(x, w, b, options);
  if (needsFloat32OnCpu(x)) return convInFloat32(x, w, b, options);
  const { batch, groups, inChannels, outChannels: perGroup, window } = sizes;
  const outChannels = w.shape[0]!;
  const dense = contiguous(x);
  const weights = contiguous(w);
  const [input, weight] = [dense.strided, weights.strided];
  const out = empty(
    x.dtype,
    [batch, outChannels, window.outHeight, window.outWidth],
    jointDevice('conv2d', x, w, b),
  );
  const { dtype } = out;
  const byChannel = [batch, outChannels, window.outHeight * window.outWidth];
  kernels().conv2d({ out: out.strided, x: input, weight }, sizes);
  if (b) {
    const values = withStrides(b.strided, [0, b.strides[0]!, 0]);
    kernels().map('add', dtype, byChannel, out.strided, out.strided, values);
  }
  if (isRecording(dense, weights, b)) {
    const [toX, toW, toB] = [dense.target, weights.target, b?.target ?? null];
    const saved = [...(toW ? [dense.storage] : []), ...(toX ? [weights.storage] : [])];
    const [xShape, wShape] = [x.shape, w.shape];
    record('conv2d', out, [toX, toW, toB], saved, (grad, graph) => {
      if (graph) {
        const own = graphOf(graph);
        if (toB) own.send(toB, own.grad.sum([0, 2, 3]));
        if (toW)
          own.send(
            toW,
            weightGradient(conv2d, own.saved(input, xShape, toX), own.grad, wShape, groups, window),
          );
        if (toX)
          own.send(
            toX,
            inputGradient(conv2d, own.grad, own.saved(weight, wShape, toW), xShape, groups, window),
          );
        return;
      }
      if (toB) {
        const into = toB.begin();
        kernels().reduce('sum', byChannel, withStrides(into.dense, [0, 1, 0]), grad.dense);
        toB.end(into);
      }
      if (toW) {
        kernels().conv2dGradWeight(
          { gradWeight: toW.open(), grad: grad.dense, x: input },
          { batch, groups, inChannels, outChannels: perGroup, window, accumulate: toW.isFilled },
        );
        toW.close();
      }
      if (toX) {
        kernels().conv2dGradInput(
          { gradX: toX.open(), grad: grad.dense, weight },
          { batch, groups, inChannels, outChannels: perGroup, window, accumulate: toX.isFilled },
        );
        toX.close();
      }
    });
  }
  if (dense !== x) dense.dispose();
  if (weights !== w) weights.dispose();
  return out;
}

/** Runs `op` on `a` with a dimension of size 1 at `dim`, and drops that dimension of the result. */
function withDimension(a: Tensor, dim: number, op: (a: Tensor) => Tensor): Tensor {
  const more = unsqueeze(a, dim);
  const result = op(more);
  const out = squeeze(result, dim);
  more.dispose();
  result.dispose();
  return out;
}

function convInFloat32(x: Tensor, w: Tensor, b: Tensor | null, options: ConvOptions): Tensor {
  const wide = [x, w, ...(b ? [b] : [])].map((tensor) => to(tensor, 'float32'));
  const result = conv2d(wide[0]!, wide[1]!, wide[2] ?? null, options);
  const out = to(result, x.dtype);
  for (const tensor of [...wide, result]) tensor.dispose();
  return out;
}

/** As ConvOptions, for one dimension. */
export interface Conv1dOptions {
  /** Distance between two positions of the kernel. Default 1. */
  readonly stride?: number;
  /** Zeros on both sides; 'same' keeps the length with stride 1, 'valid' adds none. Default 0. */
  readonly padding?: number | 'same' | 'valid';
  /** Distance between two elements of the kernel. Default 1. */
  readonly dilation?: number;
  /** Number of groups of channels that are computed apart from each other. Default 1. */
  readonly groups?: number;
}

const conv1dOptions = optionChecks<Conv1dOptions>({
  stride: atLeastOne,
  padding: { expected: "'same', 'valid' or an integer ≥ 0", fits: isPadding },
  dilation: atLeastOne,
  groups: atLeastOne,
});

function isPadding(value: unknown): boolean {
  return value === 'same' || value === 'valid' || (Number.isSafeInteger(value) && (value as number) >= 0);
}

/**
 * Convolves x [batch, in, length] with w [out, in / groups, kernel], and adds b [out] unless it is null. x, and the
 * result, may lack the batch.
 */
export function conv1d(x: Tensor, w: Tensor, b: Tensor | null = null, options: Conv1dOptions = {}): Tensor {
  checkOptions('conv1d', options, conv1dOptions);
  requireOperands('conv1d', x, w, b);
  const { stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
  const fits = (x.rank === 2 || x.rank === 3) && w.rank === 3 && x.shape.at(-2) === w.shape[1]! * groups;
  if (!fits) throw badConv1d(x.shape, w.shape, b?.shape ?? null, groups);
  const kernel = unsqueeze(w, 2);
  const out = withDimension(x, -2, (planes) =>
    conv2d(planes, kernel, b, {
      stride: padding === 'same' ? stride : [1, stride],
      padding: typeof padding === 'number' ? [0, padding] : padding,
      dilation: [1, dilation],
      groups,
    }),
  );
  kernel.dispose();
  return out;
}
