// Combines each hook with noSync, join, ZeRO and unused parameters, in real processes over the host backend. All ranks
// must hold the same bits, and equal one process on the joined batch except for the rounding of the hook.
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { alone, combinations } from '../../fixtures/features.ts';
import { largestDifference } from '../../support/ranks.ts';

const fixture = new URL('../../fixtures/features.ts', import.meta.url);

for (const [size, apart] of [
  [1, false],
  [2, true],
  [3, false],
  [4, false],
] as const)
  it(`${size} ranks${apart ? ', each on a host of its own' : ''}`, { timeout: 180_000 }, async () => {
    const ranks = values<Record<string, Float32Array>>(
      await withRanks(size, fixture, 'run', { args: [apart, true], timeoutMs: 170_000 }),
    );
    for (const [name, feature] of Object.entries(combinations)) {
      for (const rank of ranks) expect(rank[name]).toEqual(ranks[0]![name]);
      const difference = largestDifference(ranks[0]![name]!, alone(feature, size));
      expect({ name, isClose: difference < feature.tolerance, difference }).toMatchObject({ isClose: true });
    }
  });
