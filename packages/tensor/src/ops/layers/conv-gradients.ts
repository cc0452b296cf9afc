// The gradients of a convolution, written as convolutions, so that they have gradients themselves. The kernels of
// conv.ts compute the same faster.
import type { Window } from '../../backends/kernels.ts';
import { arange, zeros } from '../../core/creation.ts';
import type { Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { cat } from '../shape/join.ts';

/** conv2d(), which imports this file. */
type Convolution = (
  x: Tensor,
  w: Tensor,
  b: null,
  options: {
    readonly stride?: readonly [number, number];
    readonly dilation?: readonly [number, number];
    readonly groups?: number;
  },
) => Tensor;

/**
 * Computes the gradient of a convolution's weights by a convolution: batch and channels are exchanged, and so are
 * stride and dilation. The part of the padded input that the last strides do not reach is cut off.
 */
export function weightGradient(
  conv2d: Convolution,
  x: Tensor,
  grad: Tensor,
  shape: Shape,
  groups: number,
  window: Window,
): Tensor {
  const { strideY, strideX, dilationY, dilationX, kernelHeight, kernelWidth } = window;
  if (x.count === 0 || grad.count === 0) return zeros(shape, { dtype: grad.dtype, device: grad.device });
  const padded = enlarged(x, window);
  const parts = Array.from({ length: groups }, (_, group) => {
    const [ins, outs] = [shape[1]!, shape[0]! / groups];
    const input = padded.narrow(1, group * ins, ins).transpose(0, 1);
    const gradient = grad.narrow(1, group * outs, outs).transpose(0, 1);
    const all = conv2d(input, gradient, null, {
      stride: [dilationY, dilationX],
      dilation: [strideY, strideX],
    });
    return all.narrow(2, 0, kernelHeight).narrow(3, 0, kernelWidth).transpose(0, 1);
  });
  return cat(parts, 0);
}

/** Computes the gradient of a convolution's input by a convolution of the gradient, spread by the stride. */
export function inputGradient(
  conv2d: Convolution,
  grad: Tensor,
  w: Tensor,
  shape: Shape,
  groups: number,
  window: Window,
): Tensor {
  const { strideY, strideX, dilationY, dilationX, kernelHeight, kernelWidth, padTop, padLeft } = window;
  const [height, width] = shape.slice(-2) as [number, number];
  const [batch, outs, rows, cols] = grad.shape as [number, number, number, number];
  const { dtype, device } = grad;
  if (grad.count === 0 || w.count === 0) return zeros(shape, { dtype, device });
  const [reachY, reachX] = [(kernelHeight - 1) * dilationY, (kernelWidth - 1) * dilationX];
  // Element (y, x) of the gradient stands at (y · stride + reach) of a plane, over which the turned kernel slides.
  const placed = (count: number, stride: number, reach: number): Tensor =>
    arange(0, count, 1, { dtype: 'int64', device }).mul(stride).add(reach);
  const planeRows = Math.max(height + padTop, (rows - 1) * strideY + 1) + reachY;
  const planeCols = Math.max(width + padLeft, (cols - 1) * strideX + 1) + reachX;
  const wide = zeros([batch, outs, rows, planeCols], { dtype, device }).indexAdd(
    3,
    placed(cols, strideX, reachX),
    grad,
  );
  const plane = zeros([batch, outs, planeRows, planeCols], { dtype, device });
  const spread = plane.indexAdd(2, placed(rows, strideY, reachY), wide);
  const turned = w.reshape([groups, outs / groups, w.shape[1]!, kernelHeight, kernelWidth]).transpose(1, 2);
  const kernel = turned
    .reshape([groups * w.shape[1]!, outs / groups, kernelHeight, kernelWidth])
    .flip([2, 3]);
  const all = conv2d(spread, kernel, null, { dilation: [dilationY, dilationX], groups });
  return all.narrow(2, padTop, height).narrow(3, padLeft, width);
}

/** Returns x with zeros around it, as far as the window's padding and its last position reach. */
function enlarged(x: Tensor, window: Window): Tensor {
  const { padTop, padLeft, height, width, outHeight, outWidth, strideY, strideX } = window;
  const { kernelHeight, kernelWidth, dilationY, dilationX } = window;
  const rows = (outHeight - 1) * strideY + (kernelHeight - 1) * dilationY + 1;
  const cols = (outWidth - 1) * strideX + (kernelWidth - 1) * dilationX + 1;
  const [batch, channels] = x.shape as [number, number];
  const { dtype, device } = x;
  const make = (size: number[]): Tensor => zeros(size, { dtype, device });
  const [below, beside] = [Math.max(0, rows - height - padTop), Math.max(0, cols - width - padLeft)];
  const wide = cat([make([batch, channels, height, padLeft]), x, make([batch, channels, height, beside])], 3);
  const own = wide.shape[3]!;
  return cat([make([batch, channels, padTop, own]), wide, make([batch, channels, below, own])], 2);
}
