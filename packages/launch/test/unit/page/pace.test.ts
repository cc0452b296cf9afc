// The page's model of many ranks.

import { describe, expect, it } from 'vitest';
import { compared, median, ownMs, sorted } from '../../../page/ranks/pace.js';
import { lateRank, manyRanks, slowRank } from '../../support/many-ranks.ts';

const { ranks } = manyRanks().message;

describe('64 ranks', () => {
  it('have the slow one named: it waits least, though all steps take the same time', () => {
    expect(new Set(ranks.map(({ stepMs }) => Math.round(stepMs!)))).toEqual(new Set([100]));
    const { cells, sentence } = compared(ranks, 'own');
    expect(sentence).toMatch(
      /^Slowest: rank 17 with 7\d(\.\d)? ms, \d\d % above the median of 4\d(\.\d)? ms\.$/,
    );
    const levels = [...cells].map(([rank, { level }]) => [rank, level]);
    expect(levels.filter(([, level]) => level! > 0)).toEqual([[slowRank, 4]]);
  });

  it('are sorted by it, and otherwise by their numbers', () => {
    const numbers = (list: typeof ranks) => list.map(({ rank }) => rank);
    const slowest: typeof ranks = sorted(ranks, ownMs, true);
    expect(slowest[0]!.rank).toBe(slowRank);
    const times = slowest.map((rank) => ownMs(rank)!);
    expect(times).toEqual([...times].sort((a, b) => b - a));
    expect(numbers(sorted(ranks, ({ state }: { state: string }) => state, false))).toEqual(numbers(ranks));
    const unknown = ranks.map((rank) => (rank.rank < 2 ? { ...rank, stepMs: null } : rank));
    for (const isDescending of [false, true]) {
      expect(numbers(sorted(unknown, ownMs, isDescending)).slice(-2)).toEqual([0, 1]);
    }
  });

  it('have the last one named', () => {
    expect(compared(ranks, 'behind').sentence).toBe(`Last: rank ${lateRank}, 2 steps behind.`);
    expect(compared(ranks, 'memory').sentence).toMatch(
      /^All ranks are at most 5 % above the median of 70\d MiB\.$/,
    );
  });
});

describe('fewer ranks', () => {
  const row = (rank: number, stepMs: number | null, waitMs: number | null) => ({
    ...ranks[0]!,
    rank,
    stepMs,
    waitMs,
  });

  it('have a sentence, too', () => {
    expect(compared([], 'own').sentence).toBe('Not known yet.');
    expect(compared([row(0, null, null)], 'own').sentence).toBe('Not known yet.');
    expect(compared([row(0, 12.34, 2)], 'own').sentence).toBe('Rank 0: 10.3 ms.');
    expect(compared([row(0, 0, null), row(1, 0, null)], 'own').sentence).toBe(
      'All ranks are at most 5 % above the median of 0 ms.',
    );
    const even = [row(0, 1, 1), row(1, 1, 1)].map((each) => ({ ...each, behind: 0 }));
    expect(compared(even, 'behind').sentence).toBe('All ranks are at the same step.');
  });

  it('have a median', () => {
    expect([median([3]), median([4, 1]), median([9, 1, 2])]).toEqual([3, 2.5, 2]);
  });
});
