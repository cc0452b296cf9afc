// Sizes for which JavaScript would make a list that it cannot hold: without a check, the process ends, or an error
// without a code is thrown.
import { expect, test } from 'vitest';
import {
  adaptiveAvgPool1d,
  adaptiveMaxPool1d,
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
  scope,
  tensor,
  tensorSplit,
  trilIndices,
  triuIndices,
  zeros,
} from '../../../src/index.ts';
import { padSequence } from '../../../src/nn/index.ts';
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

// A function call takes about 120,000 arguments, so Math.max(...list) throws a RangeError for longer lists.
test('lists longer than those that a call takes as arguments', () => {
  const count = 130_000;
  scope(() => {
    expect(adaptiveMaxPool1d(ones([1, 1, count + 5]), count).shape).toEqual([1, 1, count]);
    const own = { mode: 'bilinear', antialias: true } as const;
    expect(interpolate(ones([1, 1, 2 * count, 1]), { ...own, size: [count, 1] }).shape).toEqual([
      1,
      1,
      count,
      1,
    ]);
    const one = ones([1]);
    expect(padSequence(new Array(count).fill(one)).shape).toEqual([1, count]);
  });
});
