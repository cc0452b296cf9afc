// Every feature on more ranks than a host has cores, in one process: all ranks hold the same bits, and those of one
// process on the joined batch but for rounding.
import { expect, it } from 'vitest';
import { alone, features, train } from '../fixtures/features.ts';
import { largestDifference, onRanks, values } from '../support/ranks.ts';

/** On 64 ranks what differs most from one rank to the next; the rest takes long there. */
const many = ['nothing', 'PowerSGD', 'join', 'parameters that some ranks do not use'];

for (const [size, names] of [
  [8, Object.keys(features)],
  [64, many],
] as const)
  for (const name of names)
    it(`${name}, ${size} ranks`, { timeout: 120_000 }, async () => {
      const feature = features[name]!;
      const ranks = values(await onRanks(size, (group) => train(group, feature)));
      for (const rank of ranks) expect(rank).toEqual(ranks[0]);
      expect(largestDifference(ranks[0]!, alone(feature, size))).toBeLessThan(feature.tolerance);
    });
