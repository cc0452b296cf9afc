// Contract of convolutions, pooling and the sums of batch normalisation.
import { describe, expect, test } from 'vitest';
import type { ConvSizes, PoolSizes, Window } from '../../../src/backends/kernels.ts';
import type { DType } from '../../../src/core/dtype.ts';
import { expectClose, noise, product, tolerances } from '../kernels-oracle.ts';
import { valuesOf, type Workbench } from './workbench.ts';

const wide: DType[] = ['float32', 'float64'];

/** The sizes of a plane, the kernel, the stride, the dilation and the padding: each of height and width. */
type Geometry = readonly [number[], number[], number[], number[], number[]];

/** Returns a window with as many positions as fit, and the same padding on each side. */
function windowOf([plane, kernel, stride, dilation, pad]: Geometry): Window {
  const out = plane.map((size, d) =>
    Math.floor((size + 2 * pad[d]! - dilation[d]! * (kernel[d]! - 1) - 1) / stride[d]! + 1),
  );
  const [[height, width], [outHeight, outWidth]] = [plane, out] as [number[], number[]];
  return {
    ...{ height: height!, width: width!, outHeight: outHeight!, outWidth: outWidth! },
    ...{ kernelHeight: kernel[0]!, kernelWidth: kernel[1]!, strideY: stride[0]!, strideX: stride[1]! },
    ...{ dilationY: dilation[0]!, dilationX: dilation[1]!, padTop: pad[0]!, padLeft: pad[1]! },
  };
}

const geometries: Geometry[] = [
  [
    [1, 1],
    [1, 1],
    [1, 1],
    [1, 1],
    [0, 0],
  ],
  [
    [5, 7],
    [3, 3],
    [1, 1],
    [1, 1],
    [1, 1],
  ],
  [
    [28, 28],
    [3, 3],
    [1, 1],
    [1, 1],
    [1, 1],
  ],
  [
    [6, 5],
    [2, 4],
    [1, 1],
    [1, 1],
    [0, 2],
  ],
  [
    [9, 11],
    [3, 2],
    [2, 3],
    [1, 1],
    [1, 0],
  ],
  [
    [9, 8],
    [1, 1],
    [2, 2],
    [1, 1],
    [0, 0],
  ],
  [
    [8, 9],
    [3, 3],
    [1, 2],
    [2, 3],
    [2, 3],
  ],
  [
    [10, 7],
    [3, 3],
    [4, 2],
    [2, 1],
    [3, 1],
  ],
  [
    [4, 4],
    [2, 2],
    [5, 5],
    [1, 1],
    [1, 1],
  ],
  [
    [3, 40],
    [1, 5],
    [1, 1],
    [1, 2],
    [0, 4],
  ],
  [
    [5, 4],
    [1, 1],
    [1, 1],
    [1, 1],
    [2, 3],
  ],
  [
    [2, 2],
    [3, 3],
    [2, 2],
    [1, 1],
    [2, 2],
  ],
];

const channelings = [
  { batch: 1, groups: 1, inChannels: 1, outChannels: 1 },
  { batch: 3, groups: 1, inChannels: 3, outChannels: 5 },
  { batch: 2, groups: 1, inChannels: 17, outChannels: 13 },
  { batch: 2, groups: 3, inChannels: 2, outChannels: 1 },
  { batch: 0, groups: 1, inChannels: 2, outChannels: 3 },
];

/** Values of the input, of the weight and of the output's gradient. */
interface Problem {
  readonly x: number[];
  readonly w: number[];
  readonly g: number[];
}

/** Visits every product of the convolution, with the indices of its elements in x, the weight and the output. */
function forEachProduct(s: ConvSizes, visit: (x: number, w: number, out: number) => void): void {
  const { window: v } = s;
  const [allIn, allOut] = [s.groups * s.inChannels, s.groups * s.outChannels];
  for (let n = 0; n < s.batch; n++)
    for (let co = 0; co < allOut; co++)
      for (let oy = 0; oy < v.outHeight; oy++)
        for (let ox = 0; ox < v.outWidth; ox++)
          for (let c = 0; c < s.inChannels; c++)
            for (let ky = 0; ky < v.kernelHeight; ky++)
              for (let kx = 0; kx < v.kernelWidth; kx++) {
                const y = oy * v.strideY + ky * v.dilationY - v.padTop;
                const x = ox * v.strideX + kx * v.dilationX - v.padLeft;
                if (y < 0 || x < 0 || y >= v.height || x >= v.width) continue;
                const ci = Math.floor(co / s.outChannels) * s.inChannels + c;
                visit(
                  ((n * allIn + ci) * v.height + y) * v.width + x,
                  ((co * s.inChannels + c) * v.kernelHeight + ky) * v.kernelWidth + kx,
                  ((n * allOut + co) * v.outHeight + oy) * v.outWidth + ox,
                );
              }
}

function problemOf(s: ConvSizes): Problem {
  const { window: v } = s;
  return {
    x: noise(s.batch * s.groups * s.inChannels * v.height * v.width, 2),
    w: noise(s.groups * s.outChannels * s.inChannels * v.kernelHeight * v.kernelWidth, 3),
    g: noise(s.batch * s.groups * s.outChannels * v.outHeight * v.outWidth, 4),
  };
}

const zeros = (like: readonly number[]): number[] => like.map(() => 0);

export function layerContract(bench: Workbench): void {
  /**
   * Returns the tolerance of a sum of `terms` products, whose rounding error grows with the root of `terms`. cuDNN
   * chooses Winograd's method for some float32 convolutions, which transforms the operands and loses a few digits more.
   */
  const near = (dtype: DType, terms: number): number => {
    const method = bench.device !== 'cpu' && dtype === 'float32' ? 4 : 1;
    return method * tolerances[dtype] * Math.max(1, Math.sqrt(terms));
  };
  const check = (dtype: DType, s: ConvSizes): void => {
    const { x, w, g } = problemOf(s);
    const [out, gradX, gradW] = [zeros(g), zeros(x), zeros(w)];
    forEachProduct(s, (i, k, o) => {
      out[o]! += x[i]! * w[k]!;
      gradX[i]! += g[o]! * w[k]!;
      gradW[k]! += g[o]! * x[i]!;
    });
    const [input, weight, grad] = [bench.put(dtype, x), bench.put(dtype, w), bench.put(dtype, g)];
    const terms = product([s.inChannels + s.outChannels, s.window.kernelHeight, s.window.kernelWidth]);
    const got = bench.dirty(out.length, dtype);
    bench.kernels.conv2d({ out: got, x: input, weight }, s);
    expectClose(valuesOf(got), out, near(dtype, terms));
    for (const accumulate of [false, true]) {
      const start = accumulate ? 99 : 0;
      const [toX, toW] = [bench.dirty(x.length, dtype), bench.dirty(w.length, dtype)];
      bench.kernels.conv2dGradInput({ gradX: toX, grad, weight }, { ...s, accumulate });
      const wantX = gradX.map((value) => start + value);
      expectClose(valuesOf(toX), wantX, near(dtype, terms));
      bench.kernels.conv2dGradWeight({ gradWeight: toW, grad, x: input }, { ...s, accumulate });
      const wantW = gradW.map((value) => start + value);
      expectClose(valuesOf(toW), wantW, near(dtype, g.length / s.outChannels));
    }
  };

  describe('conv2d and its gradients', () => {
    test.each(wide)('%s, with all kinds of strides, dilations, paddings and groups', (dtype) => {
      for (const geometry of geometries) {
        for (const channels of channelings) {
          if (product(geometry[0]) > 500 && (channels.batch > 2 || dtype === 'float64')) continue;
          check(dtype, { ...channels, window: windowOf(geometry) });
        }
      }
    });

    test('more than one block of rows, columns and sums', () => {
      const window = windowOf([
        [13, 14],
        [3, 3],
        [1, 1],
        [1, 1],
        [1, 1],
      ]);
      check('float32', { batch: 1, groups: 1, inChannels: 50, outChannels: 33, window });
      const strided = windowOf([
        [21, 23],
        [3, 3],
        [2, 2],
        [1, 1],
        [1, 1],
      ]);
      check('float32', { batch: 2, groups: 1, inChannels: 5, outChannels: 201, window: strided });
    });
  });

  describe('pooling', () => {
    test.each(wide)('maxPool of %s takes the first of the largest and its position', (dtype) => {
      for (const geometry of geometries.filter(([, kernel, , , pad]) =>
        pad.every((p, d) => 2 * p <= kernel[d]!),
      )) {
        const window = windowOf(geometry);
        const planes = 3;
        const { height, width, outHeight, outWidth } = window;
        // There are few different values, so most windows have ties.
        const values = noise(planes * height * width, 6).map((value) => Math.round(value));
        const out = bench.dirty(planes * outHeight * outWidth, dtype);
        const positions = bench.dirty(planes * outHeight * outWidth, 'int64');
        bench.kernels.maxPool({ out, positions, a: bench.put(dtype, values) }, { planes, window });
        const want = valuesOf(out).map(() => [-Infinity, 0]);
        const s = { batch: planes, groups: 1, inChannels: 1, outChannels: 1, window };
        forEachProduct(s, (i, _, o) => {
          if (values[i]! > want[o]![0]!) want[o] = [values[i]!, i % (height * width)];
        });
        expect(valuesOf(out)).toEqual(want.map(([value]) => value));
        expect(valuesOf(positions)).toEqual(want.map(([, position]) => position));
      }
    });

    test('maxPool lets NaN and −∞ through', () => {
      const window = windowOf([
        [1, 8],
        [1, 2],
        [1, 2],
        [1, 1],
        [0, 0],
      ]);
      const values = [1, NaN, NaN, 2, -Infinity, -Infinity, 3, Infinity];
      for (const dtype of wide) {
        const [out, positions] = [bench.dirty(4, dtype), bench.dirty(4, 'int64')];
        bench.kernels.maxPool({ out, positions, a: bench.put(dtype, values) }, { planes: 1, window });
        expect(valuesOf(out)).toEqual([NaN, NaN, -Infinity, Infinity]);
        expect(valuesOf(positions)).toEqual([1, 2, 4, 7]);
      }
    });

    test.each(wide)('avgPool of %s over any boxes, and its gradient', (dtype) => {
      const sizes: PoolSizes = { planes: 3, height: 7, width: 9, outHeight: 3, outWidth: 4 };
      // A box is one of `rows` and one of `cols`: begin, end (excluded) and divisor.
      const rows = [
        [0, 3, 3],
        [1, 7, 5],
        [6, 7, 1],
      ];
      const cols = [
        [0, 9, 9],
        [2, 4, 2],
        [4, 4, 7],
        [8, 9, 3],
      ];
      const bins = bench.put('int64', [...rows, ...cols].flat());
      const [values, grads] = [noise(3 * 63, 2), noise(3 * 12, 3)];
      const want = zeros(grads);
      const wantGrad = zeros(values);
      for (const o of want.keys()) {
        const [top, bottom, high] = rows[Math.floor(o / 4) % 3] as [number, number, number];
        const [left, right, broad] = cols[o % 4] as [number, number, number];
        for (let y = top; y < bottom; y++) {
          for (let x = left; x < right; x++) {
            const at = Math.floor(o / 12) * 63 + y * 9 + x;
            want[o]! += values[at]! / (high * broad);
            wantGrad[at]! += grads[o]! / (high * broad);
          }
        }
      }
      const [out, gradIn] = [bench.dirty(36, dtype), bench.dirty(3 * 63, dtype)];
      bench.kernels.avgPool({ out, a: bench.put(dtype, values), bins }, sizes);
      expectClose(valuesOf(out), want, tolerances[dtype]);
      bench.kernels.avgPoolGrad({ gradIn, grad: bench.put(dtype, grads), bins }, sizes);
      expectClose(valuesOf(gradIn), wantGrad, tolerances[dtype]);
    });
  });

  describe('sums by channel', () => {
    test.each(wide)('moments of %s, and the sums that a gradient needs', (dtype) => {
      for (const [outer, channels, inner] of [
        [1, 1, 1],
        [4, 3, 5],
        [7, 600, 1],
        [3, 2, 100],
        [2, 5, 784],
        [0, 3, 4],
      ] as const) {
        const count = outer * channels * inner;
        const values = noise(count).map((value) => Math.fround(value + 100));
        const [grads, means] = [noise(count, 5), noise(channels, 6)];
        const ofChannel = (c: number): number[] =>
          Array.from(values.keys()).filter((i) => Math.floor(i / inner) % channels === c);
        const all = Array.from({ length: channels }, (_, c) => ofChannel(c));
        const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
        const [input, out] = [bench.put(dtype, values), bench.dirty(2 * channels, dtype)];
        bench.kernels.channelMoments({ out, a: input }, { outer, channels, inner });
        const mean = all.map((at) => sum(at.map((i) => values[i]!)) / Math.max(1, at.length));
        const squares = all.map((at, c) => sum(at.map((i) => (values[i]! - mean[c]!) ** 2)));
        expectClose(valuesOf(out), [...mean, ...squares], 10 * tolerances[dtype]);
        const [grad, middle] = [bench.put(dtype, grads), bench.put(dtype, means)];
        bench.kernels.channelGradSums({ out, grad, a: input, mean: middle }, { outer, channels, inner });
        const total = all.map((at) => sum(at.map((i) => grads[i]!)));
        const products = all.map((at, c) => sum(at.map((i) => grads[i]! * (values[i]! - means[c]!))));
        expectClose(
          valuesOf(out),
          [...total, ...products],
          10 * tolerances[dtype] * Math.max(1, outer * inner),
        );
      }
    });

    test('a mean of float32 values whose sum is beyond float32', () => {
      const out = bench.dirty(2, 'float32');
      const input = bench.put('float32', [1e38, 1e38, 3e38, 3e38]);
      bench.kernels.channelMoments({ out, a: input }, { outer: 4, channels: 1, inner: 1 });
      expectClose([valuesOf(out)[0]! / 1e38], [2], 1e-6);
    });
  });
}
