// Runs the small sizes; test/full/backends/gpt.test.ts has the larger ones.
import { expect, it } from 'vitest';
import { alone } from '../fixtures/gpt.ts';
import { gptSuite } from '../support/gpt-suite.ts';

it('learns', () => {
  const { first, last } = alone(1);
  expect(last).toBeLessThan(first / 2);
});

gptSuite([2], [8]);
