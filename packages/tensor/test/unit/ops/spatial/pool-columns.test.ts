// Tests errors of pools, columns, shuffles and channel dropout; their values are compared with PyTorch.
import { describe, expect, test } from 'vitest';
import {
  alphaDropout,
  arange,
  avgPool2d,
  channelShuffle,
  col2im,
  dropout2d,
  im2col,
  manualSeed,
  maxPool1d,
  maxPool2dWithIndices,
  maxUnpool2d,
  ones,
  pixelShuffle,
  pixelUnshuffle,
  randn,
} from '../../../../src/index.ts';

describe('pools', () => {
  test('unpooling puts elements where pooling took them', () => {
    const x = arange(16).reshape([1, 4, 4]);
    const [largest, places] = maxPool2dWithIndices(x, 2);
    expect(places.toArray()).toEqual([
      [
        [5, 7],
        [13, 15],
      ],
    ]);
    expect(maxUnpool2d(largest, places, 2).toArray()).toEqual([
      [
        [0, 0, 0, 0],
        [0, 5, 0, 7],
        [0, 0, 0, 0],
        [0, 13, 0, 15],
      ],
    ]);
  });

  test('refuse what does not fit', () => {
    expect(() => maxPool1d(ones([3]), 2)).toThrow('maxPool1d: expected [batch, channels, length]');
    expect(() => maxPool1d(ones([1, 3]), 2, { padding: 2 })).toThrow(
      'maxPool1d: padding: expected at most half',
    );
    expect(() => avgPool2d(ones([1, 2, 2]), 2, { divisorOverride: 0 })).toThrow(
      'divisorOverride: expected an integer',
    );
    const [largest, places] = maxPool2dWithIndices(ones([1, 4, 4]), 2);
    expect(() => maxUnpool2d(largest, places, 2, { outputSize: [9, 4] })).toThrow(
      'less than a stride from [4, 4]',
    );
    expect(() => maxUnpool2d(largest, places.to('int32'), 2)).toThrow('int32');
  });
});

describe('columns and shuffles', () => {
  test('col2im of im2col counts how many windows have each element', () => {
    const columns = im2col(ones([1, 3, 3]), 2);
    expect(columns.shape).toEqual([4, 4]);
    expect(col2im(columns, 3, 2).toArray()).toEqual([
      [
        [1, 2, 1],
        [2, 4, 2],
        [1, 2, 1],
      ],
    ]);
  });

  test('refuse what does not fit', () => {
    expect(() => im2col(ones([1, 2, 2]), 3)).toThrow('im2col: a window of [3, 3]');
    expect(() => col2im(ones([4, 3]), 3, 2)).toThrow('one column for each window, got [4, 3]');
    expect(() => pixelShuffle(ones([3, 2, 2]), 2)).toThrow('channels that 4 divides, got [3, 2, 2]');
    expect(() => pixelUnshuffle(ones([1, 3, 2]), 2)).toThrow('a height and width that 2 divides');
    expect(() => channelShuffle(ones([4, 2]), 2)).toThrow('channelShuffle: expected at least 3 dimensions');
  });
});

describe('dropout', () => {
  test('of channels keeps or drops whole channels', () => {
    manualSeed(1);
    const kept = dropout2d(ones([8, 8, 2, 2]), 0.5).reshape([64, 4]);
    const [low, high] = [kept.min(1).toArray(), kept.max(1).toArray()];
    expect(low).toEqual(high);
    expect(new Set(low as number[])).toEqual(new Set([0, 2]));
    expect(() => dropout2d(ones([2, 2]))).toThrow('dropout2d');
  });

  test('alphaDropout keeps mean and variance', () => {
    manualSeed(1);
    const out = alphaDropout(randn([100_000]), 0.3);
    expect(Math.abs(out.mean().item())).toBeLessThan(0.02);
    expect(Math.abs(out.std().item() - 1)).toBeLessThan(0.02);
  });
});
