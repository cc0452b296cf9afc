// Wrong calls and edge cases of embeddingBag, bilinear, pooling of volumes, and writes to parts of tensors.
import { describe, expect, test } from 'vitest';
import {
  adaptiveAvgPool3d,
  avgPool3d,
  bilinear,
  broadcastShapes,
  convTranspose3d,
  embeddingBag,
  fmax,
  grad,
  gradient,
  gumbelSoftmax,
  histogram,
  linearCrossEntropy,
  lpPool3d,
  manualSeed,
  maskedScatter,
  maxPool3d,
  maxPool3dWithIndices,
  maxUnpool3d,
  noGrad,
  ones,
  put,
  rrelu,
  selectScatter,
  type Tensor,
  tensor,
  vander,
} from '../../../src/index.ts';
import { AdaptiveLogSoftmaxWithLoss, EmbeddingBag } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

const index = (): Tensor => tensor([0n, 1n, 2n]);
const table = (): Tensor => ones([3, 2]);

describe('embeddingBag', () => {
  test('refuses bags that do not fit, and weights for other modes', () => {
    expect(() => embeddingBag(index(), table())).toThrow(
      'embeddingBag: expected offsets for an index of one dimension, got shape [3].',
    );
    expect(codeOf(() => embeddingBag(index(), table(), tensor([1n])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => embeddingBag(index(), table(), tensor([0n, 4n])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => embeddingBag(tensor([3n]), table(), tensor([0n])))).toBe('ERR_TENSOR_ARGUMENT');
    const offsets = tensor([0n]);
    expect(() => embeddingBag(index(), table(), offsets, { perSampleWeights: ones([3]) })).toThrow(
      "embeddingBag: perSampleWeights with mode 'mean': expected no such option",
    );
    expect(codeOf(() => embeddingBag(index(), table(), offsets, { paddingIdx: 3 }))).toBe(
      'ERR_TENSOR_ARGUMENT',
    );
    expect(codeOf(() => new EmbeddingBag(3, 2, { paddingIdx: -4 }))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test.each([
    [2, [0.6, 0.8], [0.4472135603427887, 0.8944271206855774], [1.3, 1.8]],
    [
      1,
      [0.4285714030265808, 0.5714285373687744],
      [0.3333333134651184, 0.6666666269302368],
      [0.9571429, 1.3428571],
    ],
    [Infinity, [0.75, 1], [0.4999999701976776, 0.9999999403953552], [1.6, 2.2]],
  ])('shortens the rows that it looks up by the norm of order %d, as PyTorch does', (normType, a, b, sum) => {
    const rows = [
      [3, 4],
      [0.1, 0.2],
      [6, -8],
      [1, 2],
    ];
    const layer = new EmbeddingBag(4, 2, { mode: 'sum', maxNorm: 1, normType });
    noGrad(() => layer.weight.copy_(tensor(rows)));
    const out = layer.forward(tensor([0n, 1n, 0n, 3n]), tensor([0n, 3n]));
    const near = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 6));
    expect(layer.weight.toArray()).toEqual([near(a), near(rows[1]!), rows[2], near(b)]);
    expect(out.toArray()).toEqual([near(sum), near(b)]);
    out.sum().backward();
    expect(layer.weight.grad!.at(':', 0).toArray()).toEqual([2, 1, 0, 1]);
    expect(codeOf(() => new EmbeddingBag(4, 2, { maxNorm: -1 }))).toBe('ERR_TENSOR_ARGUMENT');
  });

  test('refuses offsets that decrease, such as lengths of bags', () => {
    const embedded = (...offsets: bigint[]) => embeddingBag(index(), table(), tensor(offsets));
    expect(() => embedded(0n, 3n, 2n)).toThrow(
      'embeddingBag: offsets: expected offsets that do not decrease, got 2 after 3.',
    );
    expect(() => embedded(0n, -1n)).toThrow('got -1 after 0.');
    expect(() => embedded(0n, 99n)).toThrow('embeddingBag: offsets: expected offsets up to');
    expect(() => embedded(1n, 2n)).toThrow('embeddingBag: offsets: expected a first offset of 0, got 1.');
  });

  test('of bags without rows is 0', () => {
    const offsets = tensor([0n, 3n, 3n]);
    for (const mode of ['sum', 'mean', 'max'] as const)
      expect(embeddingBag(index(), table(), offsets, { mode }).select(0, 2).toArray()).toEqual([0, 0]);
    const none = tensor([], { dtype: 'int64', shape: [0] });
    for (const mode of ['sum', 'mean', 'max'] as const) {
      const weight = table();
      weight.requiresGrad = true;
      const bags = embeddingBag(none, weight, tensor([0n]), { mode });
      expect(bags.toArray()).toEqual([[0, 0]]);
      bags.sum().backward();
      expect(weight.grad!.abs().sum().item()).toBe(0);
    }
  });

  test('has gradients', () => {
    const offsets = tensor([0n, 2n]);
    for (const mode of ['sum', 'mean', 'max'] as const) {
      gradCheck64((weight) => embeddingBag(index(), weight, offsets, { mode }), [leaf64([3, 2])]);
    }
  });
});

describe('volumes', () => {
  const x = (): Tensor => leaf64([1, 2, 3, 3, 3]);

  test('have gradients', () => {
    for (const op of [
      (a: Tensor) => maxPool3d(a, 2, { stride: 1 }),
      (a: Tensor) => avgPool3d(a, [2, 1, 2], { padding: [1, 0, 1], countIncludePad: false }),
      (a: Tensor) => adaptiveAvgPool3d(a, [2, null, 1]),
    ])
      gradCheck64(op, [x()]);
    gradCheck64(
      (a, w) => convTranspose3d(a, w, null, { stride: 2, padding: 1, outputPadding: 1 }),
      [x(), leaf64([2, 1, 2, 2, 2], 2)],
    );
  });

  test('go back to where their elements stood', () => {
    const [values, indices] = maxPool3dWithIndices(x(), 3);
    const back = maxUnpool3d(values, indices, 3);
    expect(back.shape).toEqual([1, 2, 3, 3, 3]);
    expect(back.sum([2, 3, 4]).toArray()).toEqual(values.reshape([1, 2]).toArray());
    expect(back.ne(0).mul(x().sub(back)).abs().sum().item()).toBe(0);
  });

  test('refuse shapes and sizes that do not fit', () => {
    expect(() => maxPool3d(ones([3, 3, 3]), 2)).toThrow(
      'maxPool3d: expected [batch, channels, depth, height, width]',
    );
    expect(codeOf(() => maxPool3d(x(), 4))).toBe('ERR_TENSOR_SHAPE');
    expect(() => avgPool3d(x(), [2, 2] as never)).toThrow(
      'avgPool3d: kernelSize: expected an integer ≥ 1, or three',
    );
    for (const means of [avgPool3d(ones([1, 3, 3, 3]), 3), lpPool3d(ones([1, 3, 3, 3]), 1, 3).div(27)])
      expect(means.toArray()).toEqual([[[[1]]]]);
    for (const options of [{ padding: 1 }, { ceilMode: true }])
      expect(() => avgPool3d(ones([1, 3, 3, 3]), [4, 2, 2], options)).toThrow(
        'avgPool3d: a window of [4, 2, 2] is larger than the volume [3, 3, 3]',
      );
    expect(() => lpPool3d(ones([1, 3, 3, 3]), 2, 4, { ceilMode: true })).toThrow(
      'lpPool3d: a window of [4, 4, 4]',
    );
    expect(() => maxPool3d(x(), 2, { padding: 2 })).toThrow('at most half of the window [2, 2, 2]');
    expect(codeOf(() => adaptiveAvgPool3d(x(), [1, 2] as never))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => convTranspose3d(x(), ones([1, 1, 2, 2, 2]).to('float64'))).toThrow(
      '[in, out / 1, kernel depth',
    );
  });
});

describe('other functions', () => {
  test('refuse operands that do not fit', () => {
    expect(() => bilinear(ones([2, 3]), ones([2, 4]), ones([5, 4, 3]))).toThrow(
      'bilinear: expected x1 [..., in1], x2 [..., in2], w [out, in1, in2] and b [out], got [2, 3], [2, 4], [5, 4, 3], null.',
    );
    expect(codeOf(() => linearCrossEntropy(ones([2, 3]), ones([4, 2]), index()))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => put(ones([2]), tensor([2n]), ones([1])))).toBe('ERR_TENSOR_ARGUMENT');
    expect(() => maskedScatter(ones([2]), ones([2]).gt(0), ones([1]))).toThrow(
      'maskedScatter: expected a source with at least 2 elements, one for each true element of the mask, got 1.',
    );
    expect(codeOf(() => selectScatter(ones([2, 2]), ones([3]), 0, 0))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => ones([2, 3]).sumToSize([2]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => broadcastShapes([2], [3]))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => gradient(ones([2]), 0, { spacing: [1, 2] }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => histogram(ones([2]), 2, { range: [1, 0] }))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => vander(ones([2, 2])))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => fmax('1' as never, 1))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => rrelu(ones([2]), 1, 0))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => new AdaptiveLogSoftmaxWithLoss(8, 5, [3, 2]))).toBe('ERR_TENSOR_ARGUMENT');
    expect(codeOf(() => new AdaptiveLogSoftmaxWithLoss(8, 5, [2]).forward(ones([1, 8]), tensor([5n])))).toBe(
      'ERR_TENSOR_LABEL',
    );
  });

  test('predict the class with the largest probability', () => {
    const layer = new AdaptiveLogSoftmaxWithLoss(8, 6, [2, 4], { divValue: 2 });
    const x = leaf64([20, 8]).to('float32');
    expect(layer.predict(x).toArray()).toEqual(layer.logProb(x).argmax(1).toArray());
    expect(layer.logProb(x).exp().sum(1).sub(1).abs().max().item()).toBeLessThan(1e-5);
  });

  test('draw slopes within their limits, and choices', () => {
    manualSeed(3);
    const slopes = rrelu(ones([1000]).neg(), 0.2, 0.4, { training: true }).neg();
    expect(slopes.min().item()).toBeGreaterThanOrEqual(0.2);
    expect(slopes.max().item()).toBeLessThanOrEqual(0.4);
    expect(slopes.mean().item()).toBeCloseTo(0.3, 2);
    const logits = tensor([0.1, 0.6, 0.3]).log().expand([20_000, 3]).contiguous();
    logits.requiresGrad = true;
    const choices = gumbelSoftmax(logits, -1, { hard: true });
    expect(choices.sum(1).sub(1).abs().max().item()).toBeLessThan(1e-6);
    for (const [i, share] of (choices.detach().mean(0).toArray() as number[]).entries())
      expect(Math.abs(share - [0.1, 0.6, 0.3][i]!)).toBeLessThan(0.02);
    expect(grad(choices.select(1, 0).sum(), logits)[0]!.abs().sum().item()).toBeGreaterThan(0);
  });
});
