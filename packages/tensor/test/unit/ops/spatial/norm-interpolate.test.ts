// Tests errors and memory of the norms over groups and of interpolate; their values are compared with PyTorch.
import { describe, expect, test } from 'vitest';
import {
  affineGrid,
  arange,
  grad,
  gridSample,
  groupNorm,
  instanceNorm,
  interpolate,
  memory,
  ones,
  randn,
  scope,
  type Tensor,
  tensor,
  zeros,
} from '../../../../src/index.ts';
import { codeOf } from '../../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../../support/leaf64.ts';

describe('groupNorm and instanceNorm', () => {
  test('have the gradients of finite differences', () => {
    gradCheck64(
      (x, weight, bias) => groupNorm(x!, 2, { weight: weight!, bias: bias! }),
      [leaf64([2, 4, 3]), leaf64([4], 2), leaf64([4], 3)],
    );
  });

  test('refuse groups, channels and dtypes that do not fit', () => {
    const x = ones([2, 4, 3]);
    expect(() => groupNorm(x, 3)).toThrow('groupNorm: groups: expected a divisor of the 4 channels, got 3.');
    expect(() => groupNorm(x, 2, { weight: ones([3]) })).toThrow('groupNorm: expected weight of shape [4]');
    expect(codeOf(() => groupNorm(x, 2, { weight: ones([4], { dtype: 'float64' }) }))).toBe(
      'ERR_TENSOR_DTYPE',
    );
    expect(() => groupNorm(ones([1, 2]), 2)).toThrow('more than one value');
    expect(() => instanceNorm(x, zeros([3]), ones([4]))).toThrow('expected runningMean of shape [4]');
    expect(() => instanceNorm(x, null, null, { useInputStats: false })).toThrow('running');
  });
});

describe('interpolate', () => {
  const squares = (shape: number[]): Tensor =>
    arange(shape.reduce((a, b) => a * b, 1))
      .square()
      .reshape(shape);
  const expectClose = (got: Tensor, want: readonly number[]): void => {
    for (const [i, value] of (got.reshape([-1]).toArray() as number[]).entries())
      expect(value).toBeCloseTo(want[i]!, 4);
  };

  test('trilinear resizes volumes, with the values and gradients of PyTorch', () => {
    const x = squares([1, 1, 2, 2, 2]);
    x.requiresGrad = true;
    const options = { size: [3, 2, 1], mode: 'trilinear' } as const;
    const out = interpolate(x, options);
    expect(out.shape).toEqual([1, 1, 3, 2, 1]);
    expectClose(out, [0.5, 6.5, 10.5, 24.5, 20.5, 42.5]);
    const weights = tensor([1, 2, 3, 4, 5, 6]).reshape(out.shape);
    expectClose(grad(out.mul(weights).sum(), x)[0]!, [1.25, 1.25, 2, 2, 3.25, 3.25, 4, 4]);
    expectClose(interpolate(x, { ...options, alignCorners: true }), [0, 4, 8, 20, 16, 36]);
    expect(() => interpolate(x.select(0, 0), options)).toThrow("mode 'trilinear' does not take [1, 2, 2, 2]");
  });

  test.each([
    ['bilinear', false, [3.0476193, 6.1904769, 18.7619057, 27.1428566]],
    ['bilinear', true, [8.5476198, 12.8571434, 24, 32.2222214]],
    ['bicubic', false, [1.9100268, 5.2453184, 18.7944698, 28.8531189]],
    ['bicubic', true, [7.8537135, 12.6960278, 26.36602, 36.7163773]],
  ] as const)(
    'antialias averages what an element covers: %s, corners aligned %s',
    (mode, alignCorners, want) => {
      const x = squares([1, 1, 3, 4]).div(3);
      expectClose(interpolate(x, { size: 2, mode, alignCorners, antialias: true }), want);
      expect(() => interpolate(x, { size: 2, antialias: true })).toThrow(
        "interpolate: antialias with mode 'nearest': expected mode 'bilinear' or 'bicubic', got true.",
      );
    },
  );

  test('refuses options that do not fit together', () => {
    const x = ones([1, 1, 2, 2]);
    expect(() => interpolate(x, {})).toThrow(
      'interpolate: size and scaleFactor: expected one of them, got none.',
    );
    expect(() => interpolate(x, { size: 2, scaleFactor: 2 })).toThrow('got both');
    expect(() => interpolate(x, { size: 2, alignCorners: true })).toThrow("alignCorners with mode 'nearest'");
    expect(() => interpolate(x, { size: [2, 2, 2] })).toThrow(
      'interpolate: size: expected an integer ≥ 1, or two',
    );
    expect(() => interpolate(x, { scaleFactor: -1 })).toThrow('scaleFactor: expected a number > 0');
    expect(() => interpolate(x, { size: 3, mode: 'linear' })).toThrow(
      "mode 'linear' does not take [1, 1, 2, 2]",
    );
    expect(() => interpolate(x, { size: 3, antialias: true } as never)).toThrow('antialias');
    expect(codeOf(() => interpolate(x.to('int64'), { size: 3 }))).toBe('ERR_TENSOR_DTYPE');
  });

  test('frees what it makes in between, in backward too', () => {
    const x = randn([1, 2, 3, 3]);
    x.requiresGrad = true;
    const before = memory().bytes;
    scope(() => interpolate(x, { scaleFactor: 2, mode: 'bicubic' }).sum().backward());
    expect(memory().bytes).toBe(before + x.count * 4);
  });
});

describe('gridSample and affineGrid', () => {
  test('the grid of the identity reads every element', () => {
    const x = randn([2, 3, 4, 5]);
    const theta = tensor([1, 0, 0, 0, 1, 0], { shape: [1, 2, 3] }).expand([2, 2, 3]);
    for (const alignCorners of [true, false]) {
      const same = gridSample(x, affineGrid(theta, x.shape, alignCorners), { alignCorners });
      expect(same.sub(x).abs().max().item()).toBeLessThan(1e-5);
    }
  });

  test('have the gradients of finite differences', () => {
    const grid = tensor([0.13, -0.37, 0.71, 0.59, -0.83, 0.21], { dtype: 'float64', shape: [1, 1, 3, 2] });
    grid.requiresGrad = true;
    gradCheck64((x, places) => gridSample(x!, places!), [leaf64([1, 2, 3, 4]), grid]);
    gradCheck64((x, places) => gridSample(x!, places!, { mode: 'bicubic' }), [leaf64([1, 2, 3, 4]), grid]);
    const places = tensor([0.13, -0.37, 0.71, 0.59, -0.83, 0.21], {
      ...{ dtype: 'float64', shape: [1, 1, 1, 2, 3], requiresGrad: true },
    });
    gradCheck64((x, at) => gridSample(x!, at!), [leaf64([1, 2, 2, 3, 4]), places]);
  });

  test('bicubic planes and volumes have the values of PyTorch', () => {
    const values = arange(12).square().div(10);
    const read = (...args: Parameters<typeof gridSample>): number[] =>
      gridSample(...args)
        .reshape([2])
        .toArray() as number[];
    const plane = values.reshape([1, 1, 3, 4]);
    const grid = tensor([0.13, -0.37, 0.71, 1.2], { shape: [1, 1, 2, 2] });
    const volume = values.reshape([1, 1, 2, 2, 3]);
    const places = tensor([0.13, -0.37, 0.2, 0.71, 1.2, -0.6], { shape: [1, 1, 1, 2, 3] });
    const got = [
      ...read(plane, grid, { mode: 'bicubic' }),
      ...read(plane, grid, { mode: 'bicubic', paddingMode: 'reflection', alignCorners: true }),
      ...read(volume, places),
      ...read(volume, places, { mode: 'nearest', paddingMode: 'border', alignCorners: true }),
    ];
    const want = [1.10878, 2.39579, 1.286587, 11.105209, 4.22011, 0.631125, 4.9, 2.5];
    for (const [i, value] of want.entries()) expect(got[i]).toBeCloseTo(value, 4);
  });

  test('refuse shapes and dtypes that do not fit', () => {
    const x = ones([1, 2, 3, 3]);
    expect(() => gridSample(x, zeros([2, 1, 1, 2]))).toThrow(
      'gridSample: expected x [batch, channels, height, width]',
    );
    expect(codeOf(() => gridSample(x, zeros([1, 1, 1, 2], { dtype: 'float64' })))).toBe('ERR_TENSOR_DTYPE');
    expect(() => gridSample(x, zeros([1, 1, 1, 2]), { mode: 'cubic' as never })).toThrow("got 'cubic'");
    expect(() => gridSample(ones([1, 1, 2, 2, 2]), zeros([1, 1, 1, 1, 3]), { mode: 'bicubic' })).toThrow(
      "gridSample: mode of volumes: expected 'bilinear' or 'nearest', got 'bicubic'.",
    );
    expect(() => affineGrid(zeros([1, 2, 3]), [2, 1, 2, 2])).toThrow(
      'affineGrid: expected theta [batch, 2, 3]',
    );
  });
});
