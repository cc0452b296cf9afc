// Tests lists of many tensors and sizes. In a process of its own, because other tests compare the peak of memory.
import { expect, test } from 'vitest';
import { adaptiveMaxPool1d, interpolate, ones, scope } from '../../src/index.ts';
import { padSequence } from '../../src/nn/index.ts';

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
