// Convolution, pooling and sums by channel, one element after the other.

import type { ConvSizes, DenseKernels, PoolSizes, Window } from '../kernels.ts';
import type { Strided } from '../operands.ts';

type Floats = Float32Array | Float64Array;

/** Returns `count` elements of a dense operand. */
const floats = ({ memory, offset }: Strided, count: number): Floats =>
  (memory.host as Floats).subarray(offset, offset + count);

/**
 * Calls tap(position in the output's plane, in the input's plane, in the window) for every position of the window and
 * every element under it, row by row. Leaves out padding.
 */
function forEachTap(w: Window, tap: (out: number, inside: number, kernel: number) => void): void {
  for (let out = 0; out < w.outHeight * w.outWidth; out++) {
    const top = Math.floor(out / w.outWidth) * w.strideY - w.padTop;
    const left = (out % w.outWidth) * w.strideX - w.padLeft;
    for (let kernel = 0; kernel < w.kernelHeight * w.kernelWidth; kernel++) {
      const y = top + Math.floor(kernel / w.kernelWidth) * w.dilationY;
      const x = left + (kernel % w.kernelWidth) * w.dilationX;
      if (y >= 0 && y < w.height && x >= 0 && x < w.width) tap(out, y * w.width + x, kernel);
    }
  }
}

/** Calls product(index in x, in the weight, in the output) for every product that a convolution adds up. */
function forEachProduct(
  { batch, groups, inChannels, outChannels, window }: ConvSizes,
  product: (x: number, weight: number, out: number) => void,
): void {
  const plane = window.height * window.width;
  const outPlane = window.outHeight * window.outWidth;
  const kernelSize = window.kernelHeight * window.kernelWidth;
  for (let image = 0; image < batch * groups; image++) {
    for (let co = 0; co < outChannels; co++) {
      for (let ci = 0; ci < inChannels; ci++) {
        const from = (image * inChannels + ci) * plane;
        const weight = (((image % groups) * outChannels + co) * inChannels + ci) * kernelSize;
        const to = (image * outChannels + co) * outPlane;
        forEachTap(window, (out, inside, kernel) => product(from + inside, weight + kernel, to + out));
      }
    }
  }
}

/** Returns the numbers of elements of x, of the weight and of the output. */
function counts({ batch, groups, inChannels, outChannels, window }: ConvSizes): [number, number, number] {
  const weights = groups * outChannels * inChannels * window.kernelHeight * window.kernelWidth;
  const images = batch * groups;
  return [
    images * inChannels * window.height * window.width,
    weights,
    images * outChannels * window.outHeight * window.outWidth,
  ];
}

/**
 * Calls `sum` with totals in float64, which start as 0 or as `out`, and stores them in `out`: they are rounded once.
 */
function summed(out: Floats, accumulate: boolean, sum: (totals: Float64Array) => void): void {
  const totals = accumulate ? Float64Array.from(out) : new Float64Array(out.length);
  sum(totals);
  out.set(totals);
}

export const conv2d: DenseKernels['conv2d'] = ({ out, x, weight }, sizes) => {
  const [xCount, weightCount, outCount] = counts(sizes);
  const [from, w] = [floats(x, xCount), floats(weight, weightCount)];
  summed(floats(out, outCount), false, (totals) =>
    forEachProduct(sizes, (i, k, o) => {
      totals[o]! += from[i]! * w[k]!;
    }),
  );
};

export const conv2dGradInput: DenseKernels['conv2dGradInput'] = ({ gradX, grad, weight }, sizes) => {
  const [xCount, weightCount, outCount] = counts(sizes);
  const [from, w] = [floats(grad, outCount), floats(weight, weightCount)];
  summed(floats(gradX, xCount), sizes.accumulate, (totals) =>
    forEachProduct(sizes, (i, k, o) => {
      totals[i]! += from[o]! * w[k]!;
    }),
  );
};

export const conv2dGradWeight: DenseKernels['conv2dGradWeight'] = ({ gradWeight, grad, x }, sizes) => {
  const [xCount, weightCount, outCount] = counts(sizes);
  const [from, g] = [floats(x, xCount), floats(grad, outCount)];
  summed(floats(gradWeight, weightCount), sizes.accumulate, (totals) =>
    forEachProduct(sizes, (i, k, o) => {
      totals[k]! += from[i]! * g[o]!;
    }),
  );
};

export const maxPool: DenseKernels['maxPool'] = ({ out, positions, a }, { planes, window }) => {
  const plane = window.height * window.width;
  const outPlane = window.outHeight * window.outWidth;
  const [to, from] = [floats(out, planes * outPlane), floats(a, planes * plane)];
  const where = (positions.memory.host as BigInt64Array).subarray(positions.offset);
  to.fill(-Infinity);
  for (let p = 0; p < planes; p++) {
    const isSeen = new Array<boolean>(outPlane).fill(false);
    where.fill(0n, p * outPlane, (p + 1) * outPlane);
    forEachTap(window, (o, inside) => {
      const at = p * outPlane + o;
      const value = from[p * plane + inside]!;
      if (isSeen[o] && !(value > to[at]!) && !Number.isNaN(value)) return;
      isSeen[o] = true;
      to[at] = value;
      where[at] = BigInt(inside);
    });
  }
};

/** Calls cell(index in the output, in the input, divisor) for every element of every box. */
function forEachCell(
  bins: Strided,
  { planes, height, width, outHeight, outWidth }: PoolSizes,
  cell: (out: number, inside: number, divisor: number) => void,
): void {
  const host = bins.memory.host as BigInt64Array;
  const bin = (i: number): number[] => [0, 1, 2].map((j) => Number(host[bins.offset + 3 * i + j]));
  for (let out = 0; out < planes * outHeight * outWidth; out++) {
    const plane = Math.floor(out / (outHeight * outWidth)) * height * width;
    const [top, bottom, rows] = bin(Math.floor(out / outWidth) % outHeight) as [number, number, number];
    const [left, right, cols] = bin(outHeight + (out % outWidth)) as [number, number, number];
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) cell(out, plane + y * width + x, rows * cols);
    }
  }
}

export const avgPool: DenseKernels['avgPool'] = ({ out, a, bins }, sizes) => {
  const { planes, height, width, outHeight, outWidth } = sizes;
  const from = floats(a, planes * height * width);
  summed(floats(out, planes * outHeight * outWidth), false, (totals) =>
    forEachCell(bins, sizes, (o, i, divisor) => {
      totals[o]! += from[i]! / divisor;
    }),
  );
};

export const avgPoolGrad: DenseKernels['avgPoolGrad'] = ({ gradIn, grad, bins }, sizes) => {
  const { planes, height, width, outHeight, outWidth } = sizes;
  const from = floats(grad, planes * outHeight * outWidth);
  summed(floats(gradIn, planes * height * width), false, (totals) =>
    forEachCell(bins, sizes, (o, i, divisor) => {
      totals[i]! += from[o]! / divisor;
    }),
  );
};

export const channelMoments: DenseKernels['channelMoments'] = ({ out, a }, { outer, channels, inner }) => {
  const from = floats(a, outer * channels * inner);
  const to = floats(out, 2 * channels);
  const channel = (i: number): number => Math.floor(i / inner) % channels;
  summed(to.subarray(0, channels), false, (means) => {
    for (const [i, value] of from.entries()) means[channel(i)]! += value / (outer * inner);
  });
  summed(to.subarray(channels), false, (squares) => {
    for (const [i, value] of from.entries()) squares[channel(i)]! += (value - to[channel(i)]!) ** 2;
  });
};

export const channelGradSums: DenseKernels['channelGradSums'] = (
  { out, grad, a, mean },
  { outer, channels, inner },
) => {
  const count = outer * channels * inner;
  const [from, means, grads] = [floats(a, count), floats(mean, channels), floats(grad, count)];
  summed(floats(out, 2 * channels), false, (totals) => {
    for (const [i, g] of grads.entries()) {
      const c = Math.floor(i / inner) % channels;
      totals[c]! += g;
      totals[channels + c]! += g * (from[i]! - means[c]!);
    }
  });
};
