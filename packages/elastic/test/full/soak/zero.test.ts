// Ranks of a job whose optimizer state is spread over the ranks are killed at each point of a step, each in turn.
import { expect, it } from 'vitest';
import { checkReplay, planOf, points } from '../../support/jobs.ts';

for (const at of [...points, 'exchanging'] as const)
  it(`${at} a step`, { timeout: 180_000 }, async () => {
    for (const [lost, step] of [3, 6, 1].entries()) {
      const faults = { [lost]: { step, at, do: 'SIGKILL' } } as const;
      const ends = await checkReplay(3, planOf(3, { zero: true, faults }), { zero: false });
      expect(ends[0]!.sizes).toEqual([3, 2]);
    }
  });
