// Runs every feature in real processes over the host or tcp backend. All ranks must hold the same bits, and
// equal one process on the joined batch except for rounding.
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { alone, features } from '../fixtures/features.ts';
import { largestDifference } from './ranks.ts';

const fixture = new URL('../fixtures/features.ts', import.meta.url);

/** Defines a test for a number of ranks. With `apart`, each is on a host of its own, so that all links are TCP. */
export function featuresTest(size: number, apart: boolean, backend: 'host' | 'tcp' = 'host'): void {
  const where = apart ? ', each on a host of its own' : '';
  it(`${size} ranks on ${backend}${where}`, async () => {
    const ranks = values<Record<string, Float32Array>>(
      await withRanks(size, fixture, 'run', {
        args: [apart],
        env: { RINGWISE_BACKEND: backend },
      }),
    );
    for (const [name, feature] of Object.entries(features)) {
      for (const rank of ranks) expect(rank[name]).toEqual(ranks[0]![name]);
      const difference = largestDifference(ranks[0]![name]!, alone(feature, size));
      expect({ name, isClose: difference < feature.tolerance, difference }).toMatchObject({ isClose: true });
    }
    expect(ranks[0]!['the plain hook']).toEqual(ranks[0]!.nothing);
    if (apart) expect(ranks[0]!['a wire of int8']).not.toEqual(ranks[0]!.nothing);
  });
}
