// Runs every feature on 8 ranks, and some on 64, as async functions of one process. All ranks must hold the same bits,
// and equal training without ddp on the joined batch except for rounding.
import { expect, it } from 'vitest';
import { alone, features, train } from '../fixtures/features.ts';
import { largestDifference, onRanks, values } from '../support/ranks.ts';

/** The features to run on 64 ranks: those in which ranks differ most. The others take long there. */
const many = ['nothing', 'PowerSGD', 'join', 'parameters that some ranks do not use'];

for (const [size, names] of [
  [8, Object.keys(features)],
  [64, many],
] as const)
  for (const name of names)
    it(`${name}, ${size} ranks`, async () => {
      const feature = features[name]!;
      const ranks = values(await onRanks(size, (group) => train(group, feature)));
      for (const rank of ranks) expect(rank).toEqual(ranks[0]);
      expect(largestDifference(ranks[0]!, alone(feature, size))).toBeLessThan(feature.tolerance);
    });
