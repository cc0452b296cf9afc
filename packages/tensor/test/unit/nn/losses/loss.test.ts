// Tests softmax, crossEntropy and nllLoss with labels, and mseLoss; losses.test.ts tests options and other losses.
import { describe, expect, test } from 'vitest';
import {
  arange,
  crossEntropy,
  type DType,
  generator,
  gradCheck,
  logSoftmax,
  mseLoss,
  nllLoss,
  randn,
  softmax,
  type Tensor,
  tensor,
  zeros,
} from '../../../../src/index.ts';
import { codeOf } from '../../../support/code-of.ts';
import { checkHalfSoftmax, halfSoftmaxCases } from '../../../support/half-softmax.ts';
import { expectCase, leafOf } from '../../../support/torch-case.ts';

const leaf = (...shape: number[]): Tensor => randn(shape, { generator: generator(4), requiresGrad: true });

describe('softmax', () => {
  test.each(halfSoftmaxCases)('of %s along %i is the float64 one, rounded once', checkHalfSoftmax);

  test('sums to 1 along any dimension', () => {
    for (const dim of [0, 1, 2, -1]) {
      const total = softmax(leaf(2, 3, 4), dim)
        .sum(dim)
        .dataSync();
      for (const value of total) expect(value).toBeCloseTo(1, 5);
    }
    expect(softmax(tensor([0, Math.log(3)])).dataSync()[1]).toBeCloseTo(0.75, 6);
  });

  test.each([[0], [1], [-1]])('gradients along dimension %i', (dim) => {
    gradCheck((x) => softmax(x!, dim).square(), [leaf(2, 3, 2)]);
    gradCheck((x) => logSoftmax(x!, dim), [leaf(2, 3, 2)]);
  });
});

describe('crossEntropy and nllLoss', () => {
  const logits = [
    [2, -1, 0.5],
    [0, 0, 0],
  ];
  const wanted = [0, 2];
  const want = logits.map((row, r) => Math.log(row.reduce((s, x) => s + Math.exp(x), 0)) - row[wanted[r]!]!);

  test.each(['int32', 'int64'] as DType[])('give the same numbers, with %s labels', (dtype) => {
    const labels = tensor(wanted, { dtype });
    const x = tensor(logits);
    const both = (reduction: 'mean' | 'sum' | 'none'): Tensor[] => [
      crossEntropy(x, labels, { reduction }),
      nllLoss(logSoftmax(x), labels, { reduction }),
    ];
    for (const loss of both('mean')) expect(loss.item()).toBeCloseTo((want[0]! + want[1]!) / 2, 5);
    for (const loss of both('sum')) expect(loss.item()).toBeCloseTo(want[0]! + want[1]!, 5);
    for (const loss of both('none')) {
      expect(loss.shape).toEqual([2]);
      for (const [r, value] of want.entries()) expect(loss.dataSync()[r]).toBeCloseTo(value, 5);
    }
    expect(crossEntropy(x, labels).item()).toBe(crossEntropy(x, labels, { reduction: 'mean' }).item());
  });

  test.each(['mean', 'sum', 'none'] as const)('gradients with reduction %s', (reduction) => {
    const labels = tensor([2, 0, 1, 1], { dtype: 'int64' });
    gradCheck((x) => crossEntropy(x!, labels, { reduction }), [leaf(4, 3)]);
    gradCheck((x) => nllLoss(x!, labels, { reduction }), [leaf(4, 3)]);
    gradCheck((x) => crossEntropy(x!.mul(2), labels, { reduction }).mul(3), [leaf(4, 3)]);
  });

  test.each([
    [[0, 3], 'label 3 in row 1 is out of range; expected 0 to 2 for 3 classes'],
    [[-1, 0], 'label -1 in row 0 is out of range'],
    [[0, 2 ** 33], 'label 8589934592 in row 1 is out of range'],
  ])('refuse labels %j', (labels, message) => {
    expect(() => crossEntropy(tensor(logits), tensor(labels, { dtype: 'int64' }))).toThrow(message);
  });

  test('take scores without a batch, which have one label, as PyTorch', () => {
    const scores = (): Tensor => leafOf(arange(3));
    const weight = tensor([1, 2, 3]);
    for (const label of [
      tensor(1n),
      tensor([1n]),
      tensor(1, { dtype: 'int32' }),
      tensor(1, { dtype: 'uint8' }),
    ]) {
      expectCase([scores()], (x) => crossEntropy(x, label), 1.4076059, [0.0900306, -0.7552715, 0.665241]);
      expectCase(
        [scores()],
        (x) => crossEntropy(x, label, { weight, labelSmoothing: 0.1 }),
        1.3742725,
        [0.0733639, -0.6886048, 0.615241],
      );
      expectCase([scores()], (x) => nllLoss(x, label, { weight, reduction: 'none' }), -2, [0, -2, 0]);
    }
    expectCase(
      [scores(), leafOf(tensor([0.2, 0.3, 0.5]))],
      (x, p) => crossEntropy(x, p, { weight, labelSmoothing: 0.1, reduction: 'none' }),
      1.9585987,
      [-0.0089639, -0.051133, 0.0600971],
      [2.1668453, 2.5336905, 1.1005361],
    );
    expect(() => crossEntropy(zeros([3]), tensor(3n))).toThrow('label 3 in row 0 is out of range');
  });

  test('where all rows are ignored the mean is NaN and the gradient 0, as in PyTorch', () => {
    const none = tensor([-100n, -100n]);
    for (const loss of [crossEntropy, nllLoss]) {
      const zero = [[0, 0, 0], [0, 0, 0]]; // biome-ignore format: a matrix
      expectCase([leafOf(arange(6).reshape([2, 3]))], (x) => loss(x, none), NaN, zero);
      expect(loss(zeros([2, 3]), none, { reduction: 'sum' }).item()).toBe(0);
      expect(loss(zeros([3]), tensor(-100n)).item()).toBeNaN();
      expect(loss(zeros([0, 3]), tensor([], { dtype: 'int64' })).item()).toBeNaN();
    }
  });

  test('refuse float labels, wrong shapes and unknown reductions', () => {
    const x = tensor(logits);
    expect(codeOf(() => crossEntropy(x, tensor([0, 1])))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => crossEntropy(x, tensor([0], { dtype: 'int32' })))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => crossEntropy(zeros([3]), tensor([0, 1], { dtype: 'int32' })))).toBe(
      'ERR_TENSOR_SHAPE',
    );
    expect(codeOf(() => nllLoss(zeros([3]), tensor([[0]], { dtype: 'int32' })))).toBe('ERR_TENSOR_SHAPE');
    expect(codeOf(() => crossEntropy(zeros([3]), tensor([0.5])))).toBe('ERR_TENSOR_DTYPE');
    expect(codeOf(() => crossEntropy(tensor(1), tensor(0n)))).toBe('ERR_TENSOR_SHAPE');
    const labels = tensor([0, 1], { dtype: 'int32' });
    expect(codeOf(() => crossEntropy(x, labels, { reduction: 'avg' as 'mean' }))).toBe('ERR_TENSOR_ARGUMENT');
  });
});

describe('mseLoss', () => {
  test('averages, sums or lists squared differences', () => {
    const [a, b] = [tensor([1, 2, 5]), tensor([1, 4, 4])];
    expect(mseLoss(a, b).item()).toBeCloseTo(5 / 3, 6);
    expect(mseLoss(a, b, { reduction: 'sum' }).item()).toBe(5);
    expect(mseLoss(a, b, { reduction: 'none' }).toArray()).toEqual([0, 4, 1]);
    gradCheck(
      (x, y) => mseLoss(x!, y!),
      [leaf(2, 2), randn([2, 2], { generator: generator(9), requiresGrad: true })],
    );
    expect(codeOf(() => mseLoss(zeros([2, 3]), zeros([3, 2])))).toBe('ERR_TENSOR_SHAPE');
  });
});
