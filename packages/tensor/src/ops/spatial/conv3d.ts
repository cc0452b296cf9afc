// Convolution over volumes: the slices under a window become channels of planes, which conv2d convolves at once.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anything, atLeastOne } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { narrowed } from '../../core/layout.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, mixedDtypes, shown, windowTooLarge } from '../../errors.ts';
import { recast } from '../elementwise/autocast.ts';
import { contiguous, requireFloat, requireOperand } from '../elementwise/convert.ts';
import { jointDevice } from '../joint-device.ts';
import { conv2d } from '../layers/conv.ts';
import { stack } from '../shape/join.ts';
import { part, permute, reshape, squeeze, transpose, unsqueeze } from '../shape/views.ts';
import { badConvolution } from './errors.ts';
import { pad } from './pad.ts';
import { sizesFor, type Triple } from './sizes.ts';

/** Options of conv3d(). */
export interface Conv3dOptions {
  /** Default 1. */
  readonly stride?: Triple;
  /** Zeros on each side; 'valid' is 0, 'same' keeps the size (stride 1 only). Default 0. */
  readonly padding?: Triple | 'same' | 'valid';
  /** Distance between the elements of the window. Default 1. */
  readonly dilation?: Triple;
  /** Groups of channels; a group of output channels reads only its group of input channels. Default 1. */
  readonly groups?: number;
}

/** Values are checked together with the sizes of the operands. */
export const conv3dOptions = optionChecks<Conv3dOptions>({
  stride: anything,
  padding: anything,
  dilation: anything,
  groups: atLeastOne,
});

function checkOperands(x: Tensor, w: Tensor, b: Tensor | null, groups: number): void {
  requireOperand('conv3d', 'x', x);
  requireOperand('conv3d', 'w', w);
  if (b !== null) requireOperand('conv3d', 'b', b);
  requireFloat('conv3d', x);
  for (const other of [w, b])
    if (other && other.dtype !== x.dtype) throw mixedDtypes('conv3d', x.dtype, other.dtype);
  const fits =
    (x.rank === 5 || x.rank === 4) &&
    w.rank === 5 &&
    w.count > 0 &&
    x.shape.at(-4) === w.shape[1]! * groups &&
    w.shape[0]! % groups === 0 &&
    (b === null || (b.rank === 1 && b.shape[0] === w.shape[0]));
  if (fits) return;
  const window = 'kernel depth, kernel height, kernel width';
  const weights = `[out, in / ${groups}, ${window}]`;
  const bias = b?.shape ?? null;
  throw badConvolution('conv3d', 'depth, height, width', weights, x.shape, w.shape, bias, groups);
}

/**
 * Convolves x [batch, in, depth, height, width] with w [out, in / groups, kernel depth, kernel height, kernel width],
 * adds b [out] unless it is null, and returns [batch, out, …]. x, and the result, may lack the batch. float16 and
 * bfloat16 are summed in float32. Takes memory for kernel depth copies of x.
 */
export function conv3d(x: Tensor, w: Tensor, b: Tensor | null = null, options: Conv3dOptions = {}): Tensor {
  const lowered = recast('low', [x, w, b], (...wide) => conv3d(wide[0]!, wide[1]!, wide[2], options));
  if (lowered) return lowered;
  checkOptions('conv3d', options, conv3dOptions);
  const { groups = 1, padding = 0 } = options;
  checkOperands(x, w, b, groups);
  jointDevice('conv3d', x, w, b);
  const stride = sizesFor('conv3d: stride', options.stride ?? 1, 3, 1);
  const dilation = sizesFor('conv3d: dilation', options.dilation ?? 1, 3, 1);
  const kernel = w.shape.slice(2);
  const pads = paddingOf('conv3d', padding, kernel, stride, dilation);
  const volume = x.shape.slice(-3);
  const free = volume.map((size, d) => size + pads[d]!.total - dilation[d]! * (kernel[d]! - 1) - 1);
  if (free.some((size) => size < 0) || volume.includes(0))
    throw windowTooLarge('conv3d', kernel, dilation, volume);
  const depth = Math.floor(free[0]! / stride[0]!) + 1;
  return scope(() => {
    const batched = x.rank === 5 ? x : unsqueeze(x, 0);
    const { before, total } = pads[0]!;
    const padded = total === 0 ? batched : pad(batched, [0, 0, 0, 0, before, total - before]);
    const planes = slices(padded, kernel[0]!, depth, stride[0]!, dilation[0]!);
    const [outs, , , high, wide] = w.shape as [number, number, number, number, number];
    const weights = reshape(w, [outs, -1, high, wide]);
    const out = conv2d(planes, weights, b, {
      stride: [stride[1]!, stride[2]!],
      padding: padding === 'same' ? 'same' : [pads[1]!.before, pads[2]!.before],
      dilation: [dilation[1]!, dilation[2]!],
      groups,
    });
    const [, , outHeight, outWidth] = out.shape as [number, number, number, number];
    const apart = reshape(out, [batched.shape[0]!, depth, outs, outHeight, outWidth]);
    const result = contiguous(transpose(apart, 1, 2));
    return x.rank === 5 ? result : squeeze(result, 0);
  });
}

/** Returns [batch · depth, in · kernel depth, height, width]: at each depth, the slices under the window. */
function slices(x: Tensor, kernel: number, depth: number, stride: number, dilation: number): Tensor {
  const [batch, channels, , height, width] = x.shape as [number, number, number, number, number];
  const views = Array.from({ length: kernel }, (_, k) => {
    const slice = part('conv3d', x, (layout) => narrowed(layout, 2, k * dilation, depth, stride));
    return permute(slice, [0, 2, 1, 3, 4]);
  });
  return reshape(stack(views, 3), [batch * depth, channels * kernel, height, width]);
}

/** Returns the padding in front and in total of each dimension. */
export function paddingOf(
  op: string,
  padding: number | readonly number[] | 'same' | 'valid',
  kernel: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): readonly { readonly before: number; readonly total: number }[] {
  if (padding === 'same') {
    if (stride.some((step) => step !== 1))
      throw badOption(`${op}: stride with padding 'same'`, '1', shown(stride));
    return kernel.map((size, d) => {
      const total = dilation[d]! * (size - 1);
      return { before: Math.floor(total / 2), total };
    });
  }
  if (typeof padding === 'string' && padding !== 'valid') {
    const list = ['', '', ', or two', ', or three'][kernel.length];
    throw badOption(`${op}: padding`, `'same', 'valid', an integer ≥ 0${list}`, shown(padding));
  }
  const each = sizesFor(`${op}: padding`, padding === 'valid' ? 0 : padding, kernel.length, 0);
  return each.map((before) => ({ before, total: 2 * before }));
}
