// Jobs that processes join as learners.
import { expect } from 'vitest';
import type { Plan, Trained } from '../fixtures/train.ts';
import { long, planOf } from './jobs.ts';

/** Returns the plan of a job that `size` processes found, and that others join as learners. */
export const learning = (size: number, rest: Partial<Plan>): Plan =>
  planOf(size, { ...long, options: { learn: true }, ...rest });

/** Checks a process that has joined as a learner: it had taken steps, and the others sent it next to nothing. */
export function checkLearned([state]: Trained['states'], most = 0): void {
  expect(state!.learned!.steps).toBeGreaterThan(0);
  expect(state!.learned!.bytes).toBeGreaterThan(0);
  expect(state!.sentBytes).toBeLessThanOrEqual(most);
}
