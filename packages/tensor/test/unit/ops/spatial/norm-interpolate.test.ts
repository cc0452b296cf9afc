// Tests errors and memory of the norms over groups and of interpolate; their values are compared with PyTorch.
import { describe, expect, test } from 'vitest';
import {
  affineGrid,
  gridSample,
  groupNorm,
  instanceNorm,
  interpolate,
  memory,
  ones,
  randn,
  scope,
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
  });

  test('refuse shapes and dtypes that do not fit', () => {
    const x = ones([1, 2, 3, 3]);
    expect(() => gridSample(x, zeros([2, 1, 1, 2]))).toThrow(
      'gridSample: expected x [batch, channels, height, width]',
    );
    expect(codeOf(() => gridSample(x, zeros([1, 1, 1, 2], { dtype: 'float64' })))).toBe('ERR_TENSOR_DTYPE');
    expect(() => gridSample(x, zeros([1, 1, 1, 2]), { mode: 'bicubic' as never })).toThrow("got 'bicubic'");
    expect(() => affineGrid(zeros([1, 2, 3]), [2, 1, 2, 2])).toThrow(
      'affineGrid: expected theta [batch, 2, 3]',
    );
  });
});
