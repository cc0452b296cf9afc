// Weighted covariances, with the numbers that PyTorch gives.
import { expect, test } from 'vitest';
import { cov, tensor } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { gradCheck64, leaf64 } from '../../support/leaf64.ts';

type CovOptions = NonNullable<Parameters<typeof cov>[1]>;

const rows = () => tensor([0, 1, 2, 2, 1, 0.5], { dtype: 'float64' }).reshape([2, 3]);
const fweights = tensor([1, 2, 3], { dtype: 'int64' });
const aweights = tensor([0.5, 0.25, 1], { dtype: 'float64' });

test.each<[string, CovOptions, number[][]]>([
  [
    'counts',
    { fweights },
    [
      [2 / 3, -7 / 15],
      [-7 / 15, 0.341_666_666_666_666_7],
    ],
  ],
  [
    'counts, correction 2',
    { fweights, correction: 2 },
    [
      [0.833_333_333_333_333_3, -0.583_333_333_333_333_4],
      [-0.583_333_333_333_333_4, 0.427_083_333_333_333_3],
    ],
  ],
  [
    'weights',
    { aweights },
    [
      [1.357_142_857_142_857_2, -1],
      [-1, 0.75],
    ],
  ],
  [
    'weights, correction 0',
    { aweights, correction: 0 },
    [
      [0.775_510_204_081_632_7, -0.571_428_571_428_571_4],
      [-0.571_428_571_428_571_4, 0.428_571_428_571_428_6],
    ],
  ],
  [
    'both',
    { fweights, aweights },
    [
      [0.613_861_386_138_613_9, -0.435_643_564_356_435_64],
      [-0.435_643_564_356_435_64, 0.316_831_683_168_316_84],
    ],
  ],
])('observations have %s', (_, options, expected) => {
  const found = cov(rows(), options);
  expect(found.dtype).toBe('float64');
  for (const [i, row] of (found.toArray() as number[][]).entries())
    for (const [j, value] of row.entries()) expect(value).toBeCloseTo(expected[i]![j]!, 12);
});

test('a result is in the joint dtype of the variables and the weights', () => {
  const vector = tensor([1, 2, 4], { dtype: 'int64' });
  expect(cov(vector, { fweights }).dtype).toBe('float32');
  expect(cov(vector, { aweights }).dtype).toBe('float64');
  expect(cov(vector.to('bfloat16'), { aweights: aweights.to('float32') }).dtype).toBe('float32');
});

test('gradients reach the variables and the weights', () => {
  const counts = tensor([1, 2, 3, 1], { dtype: 'int64' });
  for (const correction of [0, 1])
    gradCheck64(
      (a, w) => cov(a!, { correction, fweights: counts, aweights: w!.square() }),
      [leaf64([2, 4], 1), leaf64([4], 2)],
    );
});

test.each<[string, CovOptions, string]>([
  ['fractions as counts', { fweights: aweights }, 'cov: fweights: expected integers, got float64'],
  ['integers as weights', { aweights: fweights }, 'cov: aweights: expected a floating dtype, got int64'],
  [
    'a matrix of weights',
    { aweights: aweights.unsqueeze(0) },
    'cov: aweights: expected at most 1 dimensions',
  ],
  [
    'too few weights',
    { aweights: aweights.narrow(0, 0, 2) },
    'cov: aweights: expected one weight for each of 3 observations, got 2',
  ],
  ['a count below 0', { fweights: fweights.neg() }, 'cov: fweights: expected weights ≥ 0, got one below 0'],
  ['NaN as a weight', { aweights: aweights.div(0).sub(Infinity) }, 'cov: aweights: expected weights ≥ 0'],
  ['counts of 0', { fweights: fweights.mul(0) }, 'cov: expected weights with a sum above 0, got 0'],
])('%s are refused', (_, options, message) => {
  const call = () => cov(rows(), options);
  expect(call).toThrow(message);
  expect(codeOf(call)).toMatch(/^ERR_TENSOR_/);
});
