import { startRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';

const fixture = new URL('../fixtures/forgotten-close.ts', import.meta.url);

it.each(['membershipForgotten', 'jobForgotten'])(
  'a program that ends without close() keeps no process alive (%s)',
  async (name) => {
    const { results } = await startRanks(2, fixture, name);
    // A rank that was still alive at the deadline has a signal.
    for (const { value, signal, error } of await results) {
      expect(error).toBeUndefined();
      expect([value, signal]).toEqual([2, null]);
    }
  },
);
