// Convolution, pooling and sums by channel in C++.

import type { ConvSizes, Window } from '../../ops/layers/window.ts';
import type { LayerKernels } from '../layer-kernels.ts';
import type { NativeLayers } from './addon.ts';
import type { Writer } from './writer.ts';

/** In the order of tensor::Window. */
function listWindow(writer: Writer, at: number, w: Window): void {
  writer.list(at, w.height);
  writer.list(at + 1, w.width);
  writer.list(at + 2, w.outHeight);
  writer.list(at + 3, w.outWidth);
  writer.list(at + 4, w.kernelHeight);
  writer.list(at + 5, w.kernelWidth);
  writer.list(at + 6, w.strideY);
  writer.list(at + 7, w.strideX);
  writer.list(at + 8, w.dilationY);
  writer.list(at + 9, w.dilationX);
  writer.list(at + 10, w.padTop);
  writer.list(at + 11, w.padLeft);
}

/** In the order of tensor::ConvSizes. */
function listConv(writer: Writer, { batch, groups, inChannels, outChannels, window }: ConvSizes): void {
  writer.list(0, batch);
  writer.list(1, groups);
  writer.list(2, inChannels);
  writer.list(3, outChannels);
  listWindow(writer, 4, window);
}

export function layerKernels(
  addon: NativeLayers,
  writer: Writer,
): Omit<LayerKernels, 'linear' | 'linearGrad'> {
  return {
    conv2d: (out, x, weight, sizes) => {
      writer.dense(out, x, weight);
      listConv(writer, sizes);
      addon.conv2d();
    },
    conv2dGradInput: (gradX, grad, weight, sizes, accumulate) => {
      writer.dense(gradX, grad, weight);
      listConv(writer, sizes);
      addon.conv2dGradInput(accumulate ? 1 : 0);
    },
    conv2dGradWeight: (gradWeight, grad, x, sizes, accumulate) => {
      writer.dense(gradWeight, grad, x);
      listConv(writer, sizes);
      addon.conv2dGradWeight(accumulate ? 1 : 0);
    },
    maxPool: (out, positions, a, planes, window) => {
      writer.dense(out, positions, a);
      writer.list(0, planes);
      listWindow(writer, 1, window);
      addon.maxPool();
    },
    avgPool: (out, a, bins, { planes, height, width, outHeight, outWidth }) => {
      writer.dense(out, a, bins);
      addon.avgPool(planes, height, width, outHeight, outWidth);
    },
    avgPoolGrad: (gradIn, grad, bins, { planes, height, width, outHeight, outWidth }) => {
      writer.dense(gradIn, grad, bins);
      addon.avgPoolGrad(planes, height, width, outHeight, outWidth);
    },
    channelMoments: (out, a, outer, channels, inner) => {
      writer.dense(out, a);
      addon.channelMoments(outer, channels, inner);
    },
    channelGradSums: (out, grad, a, mean, outer, channels, inner) => {
      writer.dense(out, grad, a);
      writer.setOperand(3, mean);
      addon.channelGradSums(outer, channels, inner);
    },
  };
}
