// Sizes for which JavaScript would make a list that it cannot hold: without a check, the process ends, or an error
// without a code is thrown.
import { expect, test } from 'vitest';
import {
  adaptiveAvgPool1d,
  adaptiveMaxPool2d,
  arange,
  chunk,
  eye,
  interpolate,
  linspace,
  ones,
  pad,
  rotaryEmbedding,
  tensorSplit,
  trilIndices,
  zeros,
} from '../../../src/index.ts';
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
  ['chunk of nothing', () => chunk(zeros([0]), large)],
  ['trilIndices', () => trilIndices(large, large)],
  ['arange', () => arange(0, huge)],
  ['linspace', () => linspace(0, 1, huge)],
  ['eye', () => eye(huge)],
  ['rotaryEmbedding', () => rotaryEmbedding(huge, 4)],
  ['rotaryEmbedding of a wide head', () => rotaryEmbedding(4, huge)],
])('%s', (_, call) => {
  expect(codeOf(call)).toBe('ERR_TENSOR_MEMORY');
});
