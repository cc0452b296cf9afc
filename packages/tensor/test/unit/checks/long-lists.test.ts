// Sizes for which JavaScript would make a list that it cannot hold: without a check, the process ends, or an error
// without a code is thrown.
import { expect, test } from 'vitest';
import {
  adaptiveAvgPool1d,
  adaptiveMaxPool2d,
  arange,
  chunk,
  combinations,
  eye,
  interpolate,
  linspace,
  ones,
  pad,
  repeatInterleave,
  rotaryEmbedding,
  tensor,
  tensorSplit,
  trilIndices,
  triuIndices,
  zeros,
} from '../../../src/index.ts';
import { packSequence, padPackedSequence } from '../../../src/nn/index.ts';
import { codeOf } from '../../support/code-of.ts';

const [large, huge] = [2 ** 31, 2 ** 40];
const row = ones([1, 2, 3]);
const plane = ones([1, 1, 3, 3]);

test.each<[string, () => unknown]>([
  ['adaptiveAvgPool1d', () => adaptiveAvgPool1d(row, large)],
  ['adaptiveMaxPool2d', () => adaptiveMaxPool2d(plane, [large, 1])],
  ['interpolate to a size', () => interpolate(row, { size: large })],
  ['interpolate by a factor', () => interpolate(row, { scaleFactor: 1e9, mode: 'linear' })],
  ['pad', () => pad(row, [large, 0], { mode: 'replicate' })],
  ['tensorSplit', () => tensorSplit(row, large)],
  ['split', () => ones([1]).expand([huge]).split(1)],
  ['unbind', () => ones([1]).expand([huge]).unbind()],
  ['padPackedSequence', () => padPackedSequence(packSequence([ones([2, 1])]), { totalLength: huge })],
  ['toArray', () => ones([1]).expand([huge]).toArray()],
  ['dataSync', () => ones([1]).expand([huge]).dataSync()],
  ['chunk of nothing', () => chunk(zeros([0]), large)],
  ['trilIndices', () => trilIndices(large, large)],
  ['repeatInterleave', () => repeatInterleave(ones([2]), tensor([huge, 1], { dtype: 'int64' }))],
  ['combinations', () => combinations(arange(60), 30)],
  ['combinations with replacement', () => combinations(arange(3), huge, { withReplacement: true })],
  ['arange', () => arange(0, huge)],
  ['linspace', () => linspace(0, 1, huge)],
  ['eye', () => eye(huge)],
  ['rotaryEmbedding', () => rotaryEmbedding(huge, 4)],
  ['rotaryEmbedding of a wide head', () => rotaryEmbedding(4, huge)],
])('%s', (_, call) => {
  expect(codeOf(call)).toBe('ERR_TENSOR_MEMORY');
});

test('indices of a triangle without columns are none, for any number of rows', () => {
  expect(trilIndices(huge, 0).shape).toEqual([2, 0]);
  expect(triuIndices(0, huge).shape).toEqual([2, 0]);
});

test('a long dimension is printed by its edges', () => {
  const long = ones([2, 1, 1]).expand([2, huge, 4]);
  expect(String(long)).toBe(String(ones([2, 9000, 4])));
  expect(String(ones([1]).expand([huge]))).toBe('tensor([1., 1., 1.,  ..., 1., 1., 1.])');
});
