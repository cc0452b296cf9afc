// Checks that a small GPT trains on several ranks as in one process on the joined batch.
import { values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { alone, trainGpt } from '../fixtures/gpt.ts';
import { largestDifference, onRanks, values as valuesOf } from './ranks.ts';

const fixture = new URL('../fixtures/gpt.ts', import.meta.url);
const tolerance = 2e-5;

/** Defines the suite for these numbers of processes, and for these numbers of ranks that share one process. */
export function gptSuite(processes: readonly number[], ranksInOne: readonly number[]): void {
  describe('equal bits on all ranks, and those of one process but for rounding', () => {
    for (const size of processes)
      it(`${size} processes; also with rebuilt buckets, a static graph and ZeRO`, async () => {
        const ranks = values<Record<string, Float32Array>>(await withRanks(size, fixture, 'run'));
        const { parameters } = alone(size);
        for (const [way, trained] of Object.entries(ranks[0]!)) {
          for (const rank of ranks) expect(rank[way]).toEqual(trained);
          expect(largestDifference(trained, parameters)).toBeLessThan(tolerance);
        }
      });
    for (const size of ranksInOne)
      it(`${size} ranks in one process`, async () => {
        const ranks = valuesOf(await onRanks(size, (group) => trainGpt(group)));
        for (const rank of ranks) expect(rank).toEqual(ranks[0]);
        expect(largestDifference(ranks[0]!, alone(size).parameters)).toBeLessThan(tolerance);
      });
  });
}
