// Tests errors and memory of conv3d, the transposed convolutions and pad; their values are compared with PyTorch.
import { describe, expect, test } from 'vitest';
import {
  arange,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  memory,
  ones,
  pad,
  randn,
  scope,
  zeros,
} from '../../../../src/index.ts';
import { codeOf } from '../../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../../support/leaf64.ts';

describe('transposed convolutions', () => {
  test('are the gradient of conv2d with respect to its input', () => {
    const x = zeros([1, 2, 5, 6], { requiresGrad: true });
    const w = randn([3, 2, 2, 3]);
    const grad = randn([1, 3, 2, 2]);
    conv2d(x, w, null, { stride: [3, 2] }).backward(grad);
    const same = convTranspose2d(grad, w, null, { stride: [3, 2], outputPadding: [0, 1] });
    expect(same.shape).toEqual([1, 2, 5, 6]);
    expect(same.toArray()).toEqual(x.grad!.toArray());
  });

  test('have the gradients of finite differences', () => {
    gradCheck64(
      (x, w, b) => convTranspose2d(x!, w!, b!, { stride: 2, padding: 1, outputPadding: [1, 0], groups: 2 }),
      [leaf64([2, 4, 3, 2]), leaf64([4, 1, 3, 2]), leaf64([2])],
    );
  });

  test('refuse shapes, dtypes and steps that do not fit', () => {
    const [x, w] = [ones([1, 2, 3, 3]), ones([2, 1, 2, 2])];
    expect(() => convTranspose2d(x, ones([3, 1, 2, 2]))).toThrow(
      'convTranspose2d: expected x [batch, in, height, width], w [in, out / 1, kernel height, kernel width] and b [out]',
    );
    expect(() => convTranspose2d(x, w, ones([2]))).toThrow('b [2]');
    expect(() => convTranspose1d(ones([1, 2, 3]), ones([3, 1, 2]))).toThrow(
      'convTranspose1d: expected x [batch, in, length]',
    );
    expect(codeOf(() => convTranspose2d(x, w.to('float64')))).toBe('ERR_TENSOR_DTYPE');
    expect(() => convTranspose2d(x, w, null, { outputPadding: 1 })).toThrow(
      'convTranspose2d: outputPadding: expected less than the stride or the dilation, got [1, 1].',
    );
    expect(() => convTranspose2d(x, w, null, { padding: 3 })).toThrow(
      'convTranspose2d: the result would have a plane of [-2, -2].',
    );
    expect(() => convTranspose2d(x, w, null, { stride: 0 })).toThrow(
      'stride: expected an integer ≥ 1, or two',
    );
  });
});

describe('conv3d', () => {
  test('refuses shapes, dtypes and padding that do not fit', () => {
    const [x, w] = [ones([1, 2, 3, 3, 3]), ones([1, 2, 2, 2, 2])];
    expect(() => conv3d(x, ones([1, 1, 2, 2, 2]))).toThrow(
      'conv3d: expected x [batch, in, depth, height, width]',
    );
    expect(() => conv3d(x, w, null, { padding: 'same', stride: 2 })).toThrow(
      "conv3d: stride with padding 'same'",
    );
    expect(() => conv3d(x, w, null, { dilation: 3 })).toThrow('does not fit');
    expect(() => conv3d(x, w, null, { stride: [1, 2] as never })).toThrow('an integer ≥ 1, or three');
    expect(codeOf(() => conv3d(x.to('int64'), w.to('int64')))).toBe('ERR_TENSOR_DTYPE');
  });

  test('frees what it makes in between', () => {
    const [x, w] = [ones([2, 2, 3, 3, 3]), ones([1, 2, 2, 2, 2])];
    const before = memory().bytes;
    scope(() => conv3d(x, w, null, { padding: 1 }).sum().item());
    expect(memory().bytes).toBe(before);
  });
});

describe('pad', () => {
  test.each<[sizes: number[], row: number[]]>([
    [
      [2, -1],
      [3, 4, 1, 2, 3, 4],
    ],
    [
      [-2, 3],
      [3, 4, 5, 3, 4, 5],
    ],
    [
      [4, -1],
      [1, 2, 3, 4, 1, 2, 3, 4],
    ],
    [
      [-4, 1],
      [5, 5],
    ],
    [
      [1, -4],
      [1, 1],
    ],
  ])("mode 'circular' with %j repeats what a negative size leaves, as in PyTorch", (sizes, row) => {
    expect(pad(arange(1, 6).reshape([1, 5]), sizes, { mode: 'circular' }).toArray()).toEqual([row]);
  });

  test("mode 'circular' refuses sizes that leave too little, for which PyTorch reads unwritten memory or fails", () => {
    for (const sizes of [
      [-5, 1],
      [1, -5],
      [3, -3],
      [5, -1],
    ])
      expect(() => pad(arange(1, 6).reshape([1, 5]), sizes, { mode: 'circular' })).toThrow(
        "mode 'circular' cannot pad",
      );
  });

  test('refuses sizes and values that do not fit', () => {
    const x = ones([1, 3]);
    expect(() => pad(x, [1])).toThrow('pad: sizes: expected an even number of integers, at most 4, got [1].');
    expect(() => pad(x, [1, 1.5])).toThrow('an even number of integers');
    expect(() => pad(x, [3, 0], { mode: 'reflect' })).toThrow(
      "pad: mode 'reflect' cannot pad dimension 1 of [1, 3] by 3 in front and 0 behind.",
    );
    expect(() => pad(x, [4, 0], { mode: 'circular' })).toThrow("mode 'circular' cannot pad dimension 1");
    expect(() => pad(x, [-2, -2])).toThrow("mode 'constant' cannot pad dimension 1");
    expect(() => pad(ones([3]), [1, 1], { mode: 'reflect' })).toThrow('pads 1 to 3 dimensions');
    expect(() => pad(x, [1, 1], { mode: 'reflect', value: 1 })).toThrow(
      "value with mode 'reflect': expected 0",
    );
    expect(() => pad(x.to('uint8'), [1, 1], { value: -1 })).toThrow('-1');
    expect(() => pad(x, [1, 1], { mode: 'mirror' as never })).toThrow("got 'mirror'");
  });
});
