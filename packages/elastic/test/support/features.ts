// Features of DDP with state of their own, in jobs that lose ranks.
import { expect } from 'vitest';
import type { Fault, Plan, Point } from '../fixtures/train.ts';
import { checkReplay, planOf } from './jobs.ts';

const kill = (step: number, at: Point): Fault => ({ step, at, do: 'SIGKILL' });
const until = { epochs: 10_000, stepMs: 10, until: { size: 2, steps: 6, view: 5 } };

/**
 * Runs a job of five ranks with a feature that loses four of them, each at another point of a step, and gets one. The
 * replay of the job, in which no rank is lost, has to end with the same bits.
 */
export async function checkFeature(feature: Partial<Plan>): Promise<void> {
  const faults = {
    0: kill(2, 'averaged'),
    2: kill(3, 'backward'),
    3: kill(4, 'reduced'),
    4: kill(6, 'voted'),
  };
  const ends = await checkReplay(6, planOf(5, { ...feature, ...until, faults, joins: { 5: 4 } }));
  expect(ends[0]!.sizes).toEqual([5, 4, 3, 2, 1, 2]);
}
