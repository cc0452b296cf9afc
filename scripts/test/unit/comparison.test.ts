import { expect, it } from 'vitest';
import { comparison } from '../../demo/comparison.mjs';

const run = (seconds: number, loss: number) => ({ seconds, loss, samples: 1000 });

it('tells how many times as fast two ranks are', () => {
  const { lines, ratio, isEqual } = comparison([run(3, 0.5), run(2, 0.5001)], { cores: 2, load: 0.1 });
  expect([ratio, isEqual]).toEqual([1.5, true]);
  expect(lines[2]).toBe('Two ranks are 1.50 times as fast as one, measured just now on 2 cores.');
});

it('says so if two ranks are not faster', () => {
  const slow = (cores: number) => comparison([run(2, 0.5), run(2.5, 0.5)], { cores, load: 4.25 }).lines[2];
  expect(slow(2)).toBe(
    'Two ranks are not faster this time: 0.80 times as fast as one, measured just now on 2 cores. ' +
      'Other programs may use the cores: the load is 4.3.',
  );
  expect(slow(1)).toContain('on 1 core. They share one core.');
});

it.each([0.51, Number.NaN])('finds that the losses differ: %d', (loss) => {
  const { isEqual, lines } = comparison([run(3, 0.5), run(2, loss)], { cores: 2, load: 0 });
  expect(isEqual).toBe(false);
  expect(lines[3]).toMatch(
    /^The final losses differ by (2\.00|NaN) %, which is more than rounding explains\.$/,
  );
});
