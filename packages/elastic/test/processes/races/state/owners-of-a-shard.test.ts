// Race 12: with an optimizer that is spread over the ranks (ZeRO), the owner of a shard dies in the exchange of what it
// has updated, both owners of a shard die at once, or a rank dies while shards move to others.
import { expect, it } from 'vitest';
import type { Fault, Point } from '../../../fixtures/train.ts';
import { checkReplay, long, planOf, run, steps } from '../../../support/jobs.ts';

const fault = (step: number, at: Point): Fault => ({ step, at, do: 'SIGKILL' });
/** The replay has one optimizer of all parameters on each rank. */
const whole = { zero: false };

it('the job has the bits of one without ZeRO after losses in the vote, after it, and in the exchange', async () => {
  const faults = { 0: fault(1, 'reduced'), 4: fault(3, 'voted'), 2: fault(5, 'exchanging') };
  const ends = await checkReplay(5, planOf(5, { zero: true, faults }), whole);
  expect(ends[0]!.sizes).toEqual([5, 4, 3, 2]);
  const [paramSteps] = ends.flatMap((end) => (end.paramSteps === null ? [] : [end.paramSteps]));
  expect(paramSteps).toEqual(Array(4).fill(steps));
});

it('the same if a rank dies in a view that one has joined, before the shards have moved', async () => {
  const plan = planOf(3, {
    ...{ ...long, stepMs: 10, zero: true, joins: { 3: 0 }, ballast: 4 << 20 },
    faults: { 1: { ...fault(-2, 'sending'), delayMs: 2 } },
    until: { size: 3, steps: 6, view: 2 },
  });
  await checkReplay(4, plan, whole);
});

it('ends with a sentence if both ranks that keep a shard are lost together', async () => {
  const faults = { 1: fault(3, 'entering'), 2: fault(3, 'entering') };
  const results = await run(4, planOf(4, { zero: true, faults }));
  for (const rank of [0, 3]) {
    const { error } = results[rank]!;
    expect(error?.message).toContain('is lost, because both ranks that kept it were lost together');
    expect(error?.message).toContain('Start again from a snapshot');
  }
});
