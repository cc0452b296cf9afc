// Tests how tensors are printed.
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { arange, tensor, zeros } from '../../../src/index.ts';

// Numbers are laid out as by PyTorch. The suffixes are our own: shape=, dtype=, requiresGrad= and gradFn=.
test.each([
  [tensor(3), 'tensor(3.)'],
  [tensor(0.5), 'tensor(0.5000)'],
  [tensor([1, 2.5, -30]), 'tensor([  1.0000,   2.5000, -30.0000])'],
  [tensor([0, 1, 20]), 'tensor([ 0.,  1., 20.])'],
  [
    tensor([
      [1, 2],
      [3, 4],
    ]),
    'tensor([[1., 2.],\n        [3., 4.]])',
  ],
  [zeros([2, 1, 2]), 'tensor([[[0., 0.]],\n\n        [[0., 0.]]])'],
  [tensor([1e-8, 1]), 'tensor([1.0000e-08, 1.0000e+00])'],
  [tensor([0.25, 1e9]), 'tensor([2.5000e-01, 1.0000e+09])'],
  [tensor([NaN, Infinity, -Infinity, 1]), 'tensor([nan, inf, -inf, 1.])'],
  [tensor([-0, 2]), 'tensor([-0., 2.])'],
  [tensor([1n, -200n]), 'tensor([   1, -200])'],
  [tensor([1, 2], { dtype: 'int32' }), 'tensor([1, 2], dtype=int32)'],
  [tensor([]), 'tensor([])'],
  [zeros([0, 3]), 'tensor([], shape=[0, 3])'],
  [tensor([1], { requiresGrad: true }), 'tensor([1.], requiresGrad=true)'],
  [tensor([1], { requiresGrad: true }).mul(2), 'tensor([2.], gradFn=<mul>)'],
  [
    arange(20),
    'tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14., 15., 16., 17., 18., 19.])',
  ],
  [arange(1001), 'tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])'],
])('prints tensor %#', (value, want) => {
  expect(String(value)).toBe(want);
  expect(inspect({ value })).toContain('tensor(');
});

test('shows only the edges of large tensors', () => {
  const row = '[0., 0., 0.,  ..., 0., 0., 0.]';
  const lines = ['tensor([', row, ',\n        ', row, ',\n        ', row, ',\n        ...,\n        '];
  lines.push(row, ',\n        ', row, ',\n        ', row, '])');
  expect(String(zeros([20, 100]))).toBe(lines.join(''));
});

test('JSON has the values and not the memory', () => {
  const record = {
    loss: tensor(0.5),
    counts: tensor([[1, 2]], { dtype: 'int64' }),
    bad: tensor([Number.NaN]),
  };
  expect(JSON.stringify(record)).toBe('{"loss":0.5,"counts":[[1,2]],"bad":[null]}');
});
