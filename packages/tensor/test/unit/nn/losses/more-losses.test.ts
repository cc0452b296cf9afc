// Errors of losses with margins and of likelihoods, and weights of their modules. Values are compared with PyTorch in
// test/processes/pytorch/cases/losses/more-losses.ts.
import { describe, expect, test } from 'vitest';
import {
  gaussianNllLoss,
  hingeEmbeddingLoss,
  marginRankingLoss,
  multilabelMarginLoss,
  multiMarginLoss,
  ones,
  tensor,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
  zeros,
} from '../../../../src/index.ts';
import { MultiMarginLoss } from '../../../../src/nn/index.ts';
import { codeOf } from '../../../support/code-of.ts';

const x = ones([2, 3]);

describe('refuses', () => {
  test.each([
    [
      'ranks',
      () => marginRankingLoss(x, x, ones([3])),
      'the same number of dimensions, got [2, 3], [2, 3], [3]',
    ],
    ['ranks of triplets', () => tripletMarginLoss(x, ones([3]), x), 'got [2, 3], [3], [2, 3]'],
    ['a margin', () => tripletMarginLoss(x, x, x, { margin: 0 }), 'margin: expected a number > 0, got 0'],
    ['a power', () => multiMarginLoss(x, tensor([0n, 1n]), { p: 3 as 2 }), 'p: expected 1 or 2, got 3'],
    ['labels', () => multiMarginLoss(x, tensor([0n])), 'expected scores [batch, classes] or [classes]'],
    [
      'the weight',
      () => multiMarginLoss(x, tensor([0n, 1n]), { weight: ones([2]) }),
      'multiMarginLoss: weight',
    ],
    ['label sets', () => multilabelMarginLoss(x, tensor([0n])), 'with labels of the same shape'],
    ['variances', () => gaussianNllLoss(x, x, x.mul(-1)), 'expected variances ≥ 0, got one below 0'],
    ['their shape', () => gaussianNllLoss(x, x, ones([3])), 'expected a variance of the shape [2, 3]'],
  ])('%s', (_, call, text) => {
    expect(call).toThrow(text);
  });

  test('integers, and labels that are no class', () => {
    expect(codeOf(() => hingeEmbeddingLoss(tensor([1n]), tensor([1n])))).toBe('ERR_TENSOR_DTYPE');
    expect(() => multiMarginLoss(x, tensor([0n, 3n]))).toThrow('index 3');
  });
});

test('a triplet loss takes the distance of the caller', () => {
  const [a, b, c] = [zeros([1]), ones([1]), ones([1]).mul(3)];
  const distanceFunction = (p: typeof a, q: typeof a): typeof a => p.sub(q).abs();
  expect(tripletMarginWithDistanceLoss(a, b, c, { margin: 3, distanceFunction }).item()).toBe(1);
  expect(tripletMarginWithDistanceLoss(a, b, c, { margin: 3, distanceFunction, swap: true }).item()).toBe(2);
});

test('the weight of a module is a buffer', () => {
  const weight = ones([3]);
  expect(new MultiMarginLoss({ weight }).namedBuffers()).toEqual([['weight', weight]]);
});
