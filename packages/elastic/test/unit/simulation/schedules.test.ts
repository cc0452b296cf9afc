// Thousands of simulated schedules of faults. A schedule that fails is printed with its seed; RINGWISE_SEED=<seed> runs
// that one alone, and `npx tsx packages/elastic/bench/membership.ts` runs more, also with 1,024 members.
import { describe, expect, test } from 'vitest';
import { runSchedule, type Scale } from '../../support/simulation/run.ts';

const scales: readonly (readonly [string, number, Scale])[] = [
  ['3 to 8 members', 500, { fewest: 3, most: 8, faults: 4 }],
  ['3 to 8 members on 3 hosts that are lost or cut off', 100, { fewest: 3, most: 8, faults: 4, hosts: 3 }],
  ['64 members', 3, { fewest: 64, most: 64, faults: 6 }],
  ['256 members', 1, { fewest: 256, most: 256, faults: 2 }],
];
const only = process.env.RINGWISE_SEED;

describe('no schedule breaks an invariant', () => {
  test.each(scales)('%s', (_, count, scale) => {
    const seeds = only ? [Number(only)] : Array.from({ length: count }, (_, index) => index);
    let [finished, moved] = [0, 0];
    for (const seed of seeds) {
      try {
        const { statuses, hasMoved } = runSchedule(seed, scale);
        moved += Number(hasMoved);
        finished += statuses.filter((status) => status === 'finished').length;
      } catch (error) {
        throw new Error(`RINGWISE_SEED=${seed} with ${scale.fewest} to ${scale.most} members`, {
          cause: error,
        });
      }
    }
    // The schedules would check nothing if all jobs ended early.
    if (!only && scale.hosts !== undefined) expect(moved).toBeGreaterThan(5);
    if (!only) expect(finished).toBeGreaterThan(seeds.length * 2);
  });
});
