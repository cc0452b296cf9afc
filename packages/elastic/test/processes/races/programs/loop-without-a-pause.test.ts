// Race 17: the loop of a job never waits: its data is in memory, it does not sleep, and its only rank communicates with
// no other. The rank notices a process that wants to join nevertheless.
import { values } from '@ringwise/testing';
import { expect, it } from 'vitest';
import type { Trained } from '../../../fixtures/train.ts';
import { checkLedger, long, planOf, run } from '../../../support/jobs.ts';

it('one rank that never waits lets a second one in', async () => {
  const plan = planOf(1, { ...long, stepMs: 0, joins: { 1: 0 }, until: { size: 2, steps: 8 } });
  const results = await run(2, plan);
  const ends = values<Trained>(results);
  expect(ends.map(({ sizes }) => sizes)).toEqual([[1, 2], [2]]);
  expect(ends[1]!.state).toEqual(ends[0]!.state);
  checkLedger(results, ends[0]!.finalSteps);
});
