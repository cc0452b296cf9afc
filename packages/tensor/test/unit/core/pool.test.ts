// Tests pooling: maxPool2d, avgPool2d and adaptiveAvgPool2d.
import { describe, expect, test } from 'vitest';
import {
  adaptiveAvgPool2d,
  arange,
  avgPool2d,
  maxPool2d,
  memory,
  noGrad,
  ones,
  scope,
  zeros,
} from '../../../src/index.ts';
import { AdaptiveAvgPool2d } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';
import { expectCase, leafOf } from '../../support/torch-case.ts';
import { expectTorch } from '../../support/torch-data.ts';
import { torchLayers } from '../../support/torch-layers.ts';

describe('maxPool2d', () => {
  test('gives what PyTorch gives; of equal elements the first gets the gradient', () => {
    expectTorch(torchLayers.maxPool, [[1, 1, 4, 5]], (x) => maxPool2d(x!, 3, { stride: 2, padding: 1 }));
    expectTorch(torchLayers.maxPoolCeil, [[1, 6, 6]], (x) =>
      maxPool2d(x!, 2, { dilation: 2, ceilMode: true }),
    );
    const x = ones([1, 1, 2, 4], { requiresGrad: true });
    maxPool2d(x, 2).sum().backward();
    expect(x.grad!.toArray()).toEqual([
      [
        [
          [1, 0, 1, 0],
          [0, 0, 0, 0],
        ],
      ],
    ]);
  });

  test('padding is never the largest', () => {
    expect(maxPool2d(ones([1, 2, 2]).neg(), 2, { padding: 1 }).toArray()).toEqual([
      [
        [-1, -1],
        [-1, -1],
      ],
    ]);
  });

  test('has the gradients of finite differences, also of strided tensors and overlapping windows', () => {
    gradCheck64(
      (x) => maxPool2d(x!.transpose(-1, -2), 3, { stride: 1, padding: 1 }).square(),
      [leaf64([2, 2, 4, 5])],
    );
    gradCheck64(
      (x) => maxPool2d(x!, [1, 3], { stride: [2, 1], dilation: [1, 2] }).mul(x!.sum()),
      [leaf64([2, 5, 6])],
    );
  });

  test('keeps the dtype of halves, and takes an empty batch', () => {
    expect(maxPool2d(ones([1, 2, 2], { dtype: 'bfloat16' }), 2).dtype).toBe('bfloat16');
    expect(maxPool2d(zeros([0, 3, 4, 4]), 2).shape).toEqual([0, 3, 2, 2]);
  });

  test('refuses what does not fit', () => {
    const x = zeros([1, 1, 4, 4]);
    expect(() => maxPool2d(x, 2, { padding: 2 })).toThrow(
      'maxPool2d: padding: expected at most half of the window [2, 2], got [2, 2].',
    );
    expect(() => maxPool2d(zeros([4, 4]), 2)).toThrow(
      'maxPool2d: expected [batch, channels, height, width] or [channels, height, width] with planes that are not empty, got [4, 4].',
    );
    expect(() => maxPool2d(x, 5)).toThrow('a window of [5, 5] with dilation [1, 1] does not fit');
    // The window's elements would be at −1 and 2 of two rows.
    expect(codeOf(() => maxPool2d(zeros([1, 2, 4]), 2, { padding: 1, dilation: [3, 1] }))).toBe(
      'ERR_TENSOR_SHAPE',
    );
    expect(codeOf(() => maxPool2d(zeros([1, 1, 0]), 1))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => maxPool2d(x.to('int32'), 2))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => maxPool2d(x, 0))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('avgPool2d and adaptiveAvgPool2d', () => {
  test('give what PyTorch gives, with padding, without, and with windows that reach beyond the end', () => {
    expectTorch(torchLayers.avgPool, [[1, 1, 4, 5]], (x) => avgPool2d(x!, 3, { stride: 2, padding: 1 }));
    expectTorch(torchLayers.avgPoolCeil, [[1, 1, 4, 6]], (x) =>
      avgPool2d(x!, 3, { stride: 2, padding: 1, ceilMode: true }),
    );
    expectTorch(torchLayers.avgPoolInside, [[1, 1, 3, 5]], (x) =>
      avgPool2d(x!, [2, 3], { padding: [0, 1], ceilMode: true, countIncludePad: false }),
    );
    expectTorch(torchLayers.adaptive, [[1, 1, 3, 5]], (x) => adaptiveAvgPool2d(x!, [2, 3]));
  });

  test('have the gradients of finite differences', () => {
    gradCheck64(
      (x) => avgPool2d(x!.transpose(0, 1), 3, { stride: 1, padding: 1 }).square(),
      [leaf64([2, 3, 4, 5])],
    );
    gradCheck64((x) => adaptiveAvgPool2d(x!, [3, 2]).mul(x!.sum()), [leaf64([2, 5, 7])]);
  });

  test('null keeps a size of the input, as None of PyTorch', () => {
    // biome-ignore format: numbers of PyTorch
    expectCase(
      [leafOf(arange(6).reshape([1, 2, 3]))],
      (x) => adaptiveAvgPool2d(x, [null, 2]),
      [[[0.5, 1.5], [3.5, 4.5]]], [[[0.5, 1.5, 1], [1.5, 3.5, 2]]],
    );
    const x = leaf64([2, 3, 5, 4]);
    expect(adaptiveAvgPool2d(x, [null, null]).toArray()).toEqual(x.toArray());
    expect(new AdaptiveAvgPool2d([2, null]).forward(x).shape).toEqual([2, 3, 2, 4]);
    for (const size of [[null], [null, 0], null, [1.5, 2]])
      expect(codeOf(() => adaptiveAvgPool2d(x, size as never))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('windows that reach into the padding behind count what PyTorch counts', () => {
    const x = arange(9).reshape([1, 3, 3]);
    const options = { padding: 1, ceilMode: true };
    // biome-ignore format: numbers of PyTorch
    expect(avgPool2d(x, 2, options).toArray()).toEqual([[[0, 0.75], [2.25, 6]]]);
    // biome-ignore format: numbers of PyTorch
    expect(avgPool2d(x, 2, { ...options, countIncludePad: false }).toArray()).toEqual([[[0, 1.5], [4.5, 6]]]);
  });

  test('a single box is the mean of the plane, also of halves', () => {
    const x = leaf64([2, 3, 5, 4]).detach().to('float16');
    const pooled = adaptiveAvgPool2d(x, 1);
    expect([pooled.dtype, pooled.shape]).toEqual(['float16', [2, 3, 1, 1]]);
    expect(
      pooled
        .at('...', 0, 0)
        .sub(x.mean([2, 3]))
        .abs()
        .max()
        .item(),
    ).toBeLessThan(1e-3);
  });

  test('refuse what does not fit', () => {
    expect(codeOf(() => adaptiveAvgPool2d(zeros([1, 4, 4]), 0))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => adaptiveAvgPool2d(zeros([4, 4]), 1))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => avgPool2d(zeros([1, 4, 4]), [1, 2, 3] as never))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

test('pooling without a graph keeps nothing', () => {
  const x = ones([1, 2, 4, 4], { requiresGrad: true });
  const { tensors } = memory();
  for (const pool of [() => maxPool2d(x, 2), () => avgPool2d(x, 2), () => adaptiveAvgPool2d(x, 2)]) {
    scope(() => void noGrad(pool));
    scope(() => void pool());
    scope(() => pool().sum().backward());
    x.zeroGrad();
    expect(memory().tensors).toBe(tensors);
  }
});
