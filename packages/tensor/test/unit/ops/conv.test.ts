// Tests conv1d and conv2d.
import { describe, expect, test } from 'vitest';
import { arange, conv1d, conv2d, memory, ones, randn, scope, tensor, zeros } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';
import { expectCase, leafOf } from '../../support/torch-case.ts';
import { expectTorch } from '../../support/torch-data.ts';
import { torchLayers } from '../../support/torch-layers.ts';

describe('conv2d', () => {
  test('gives what PyTorch gives, with stride, padding, dilation and groups', () => {
    expectTorch(torchLayers.conv2d, [[1, 2, 3, 5], [2, 1, 2, 2], [2]], (x, w, b) =>
      conv2d(x!, w!, b!, { stride: [2, 1], padding: [1, 0], dilation: [1, 2], groups: 2 }),
    );
  });

  test("padding 'same' keeps the size, with the smaller half in front; 'valid' pads nothing", () => {
    expectTorch(
      torchLayers.convSame,
      [
        [1, 1, 3, 3],
        [1, 1, 2, 2],
      ],
      (x, w) => conv2d(x!, w!, null, { padding: 'same' }),
    );
    const [x, w] = [ones([1, 1, 5, 6]), ones([1, 1, 3, 4])];
    expect(conv2d(x, w, null, { padding: 'same', dilation: 2 }).shape).toEqual([1, 1, 5, 6]);
    expect(conv2d(x, w, null, { padding: 'valid' }).shape).toEqual([1, 1, 3, 3]);
    expect(() => conv2d(x, w, null, { padding: 'same', stride: 2 })).toThrow(
      "conv2d: stride with padding 'same': expected 1, got [2, 2].",
    );
  });

  test('has the gradients of finite differences', () => {
    const shapes = [
      [[2, 3, 4, 5], [2, 3, 3, 2], { padding: 1 }],
      [[2, 4, 5, 4], [4, 2, 2, 3], { stride: 2, padding: [0, 1], groups: 2 }],
      [[1, 2, 7, 6], [2, 1, 3, 2], { stride: [3, 2], dilation: [2, 3], padding: [2, 1], groups: 2 }],
      [[1, 1, 4, 4], [2, 1, 2, 2], { padding: 'same' }],
    ] as const;
    for (const [x, w, options] of shapes) {
      gradCheck64(
        (a, b, c) => conv2d(a!, b!, c!, options).square(),
        [leaf64(x), leaf64(w, 2), leaf64([w[0]], 3)],
      );
    }
  });

  test('takes views as they are, and sums the gradients of every use', () => {
    gradCheck64(
      (x, w) => {
        const turned = x!.permute([0, 3, 1, 2]);
        const half = w!.narrow(1, 1, 2);
        return conv2d(conv2d(turned, half, null, { padding: 1 }), half, null, { padding: 1 }).square();
      },
      [leaf64([1, 3, 4, 2]), leaf64([2, 3, 3, 3], 2)],
    );
  });

  test('float32 agrees with float64; halves are computed in float32 and keep their dtype', () => {
    const [x, w, b] = [leaf64([2, 3, 9, 8]), leaf64([5, 3, 3, 3], 2), leaf64([5], 3)];
    const want = conv2d(x, w, b, { padding: 1, stride: 2 });
    want.square().sum().backward();
    for (const [dtype, digits] of [
      ['float32', 4],
      ['float16', 0],
      ['bfloat16', -1],
    ] as const) {
      const inputs = [x, w, b].map((leaf) => leaf.detach().to(dtype));
      for (const input of inputs) input.requiresGrad = true;
      const [x32, w32, b32] = inputs;
      const out = conv2d(x32!, w32!, b32!, { padding: 1, stride: 2 });
      expect(out.dtype).toBe(dtype);
      out.to('float32').square().sum().backward();
      for (const [i, leaf] of [x, w, b].entries()) {
        const apart = inputs[i]!.grad!.to('float64').sub(leaf.grad!).abs().max().item();
        expect(apart / leaf.grad!.abs().max().item()).toBeLessThan(10 ** -(digits + 2));
      }
    }
  });

  test('an empty batch has an empty result and gradients of zero', () => {
    const w = ones([2, 1, 3, 3], { requiresGrad: true });
    const out = conv2d(zeros([0, 1, 4, 4]), w, zeros([2], { requiresGrad: true }));
    expect(out.shape).toEqual([0, 2, 2, 2]);
    out.sum().backward();
    expect(w.grad!.abs().sum().item()).toBe(0);
  });

  test('refuses what does not fit, and names the shapes', () => {
    const x = zeros([1, 4, 5, 5]);
    expect(() => conv2d(x, zeros([2, 3, 3, 3]), zeros([3]))).toThrow(
      'conv2d: expected x [batch, in, height, width], w [out, in / 1, kernel height, kernel width] and b [out], ' +
        'where in and out are multiples of groups 1; got x [1, 4, 5, 5], w [2, 3, 3, 3], b [3].',
    );
    expect(codeOf(() => conv2d(x, zeros([3, 2, 1, 1]), null, { groups: 2 }))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => conv2d(zeros([4, 5, 5]), zeros([2, 3, 1, 1])))).toBe('ERR_TENSOR_SHAPE');
    expect(() => conv2d(x, zeros([1, 4, 3, 3]), null, { dilation: 3 })).toThrow(
      'conv2d: a window of [3, 3] with dilation [3, 3] does not fit into a plane of [5, 5] and its padding.',
    );
    for (const options of [{ stride: 0 }, { padding: -1 }, { dilation: [1, 0.5] }, { groups: 0 }] as const)
      expect(codeOf(() => conv2d(x, zeros([1, 4, 1, 1]), null, options))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => conv2d(x.to('int32'), x.to('int32')))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => conv2d(x, zeros([1, 4, 1, 1], { dtype: 'float64' })))).toBe('ERR_TENSOR_DTYPE');
  });

  test('training steps take no more memory than the ones before', () => {
    const [x, w, b] = [randn([2, 3, 8, 8]), randn([4, 3, 3, 3]), randn([4])];
    for (const leaf of [w, b]) leaf.requiresGrad = true;
    const use: number[] = [];
    for (let step = 0; step < 4; step++) {
      scope(() => conv2d(x, w, b, { padding: 1 }).square().mean().backward());
      const { bytes, cachedBytes } = memory();
      use.push(bytes, cachedBytes);
    }
    // From the second backward on, gradients are added through temporaries.
    expect(use.slice(4, 6)).toEqual(use.slice(2, 4));
    expect(use.slice(6)).toEqual(use.slice(2, 4));
  });
});

test('conv1d is a convolution over one row', () => {
  expectTorch(torchLayers.conv1d, [[1, 2, 5], [1, 2, 3], [1]], (x, w, b) =>
    conv1d(x!, w!, b!, { stride: 2, padding: 1 }),
  );
  expect(conv1d(zeros([2, 4, 9]), zeros([6, 2, 4]), null, { padding: 'same', groups: 2 }).shape).toEqual([
    2, 6, 9,
  ]);
  expect(() => conv1d(zeros([4, 9]), zeros([6, 2, 4]))).toThrow(
    'conv1d: expected x [batch, in, length] or [in, length], w [out, in / 1, kernel] and b [out], where in and out are ' +
      'multiples of groups 1; got x [4, 9], w [6, 2, 4], b null.',
  );
});

describe('without a batch', () => {
  test('conv2d and conv1d give what PyTorch gives', () => {
    // biome-ignore format: numbers of PyTorch
    expectCase(
      [leafOf(arange(4).reshape([1, 2, 2])), leafOf(arange(4).reshape([1, 1, 2, 2])), leafOf(tensor([1]))],
      (x, w, b) => conv2d(x, w, b, { padding: 'same' }),
      [[[15, 7], [4, 1]]], [[[0, 1], [2, 10]]], [[[[20, 10], [8, 3]]]], [10],
    );
    // biome-ignore format: numbers of PyTorch
    expectCase(
      [leafOf(arange(6).reshape([2, 3])), leafOf(arange(8).reshape([2, 2, 2]))],
      (x, w) => conv1d(x, w),
      [[19, 25], [51, 73]], [[12, 32, 22], [20, 52, 34]], [[[2, 5], [11, 14]], [[4, 11], [25, 32]]],
    );
  });

  test('are those of a batch of one, also of strided planes and halves', () => {
    const planes = leaf64([5, 6, 4]).permute([2, 0, 1]);
    const w = leaf64([6, 2, 3, 2], 2);
    const options = { groups: 2, stride: [2, 1], padding: [0, 1] } as const;
    const want = conv2d(planes.unsqueeze(0), w, null, options).squeeze(0);
    expect(conv2d(planes, w, null, options).toArray()).toEqual(want.toArray());
    gradCheck64((x, k) => conv2d(x!.permute([2, 0, 1]), k!, null, options).square(), [leaf64([5, 6, 4]), w]);
    gradCheck64(
      (x, k) => conv1d(x!.t(), k!, null, { padding: 'same' }),
      [leaf64([7, 2]), leaf64([3, 2, 4], 2)],
    );
    const half = conv2d(ones([1, 3, 3], { dtype: 'float16' }), ones([1, 1, 2, 2], { dtype: 'float16' }));
    expect([half.dtype, half.shape]).toEqual(['float16', [1, 2, 2]]);
  });
});
