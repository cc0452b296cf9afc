// Jobs whose optimizer state is spread over the ranks (ZeRO, stage 1). The replay has one optimizer of all parameters
// on each rank, and loses no rank: both have to end with the same bits.
import { describe, expect, it } from 'vitest';
import type { Fault, Point } from '../fixtures/train.ts';
import { checkReplay, planOf } from '../support/jobs.ts';

const fault = (step: number, at: Point, signal: Fault['do'] = 'SIGKILL'): Fault => ({ step, at, do: signal });
const whole = { zero: false };
const long = { epochs: 10_000, stepMs: 10 };

describe('ends with the bits of a job without ZeRO', () => {
  it('after losses in forward, backward and after the averages', async () => {
    const faults = { 1: fault(1, 'forward'), 0: fault(3, 'backward'), 3: fault(5, 'averaged') };
    const ends = await checkReplay(4, planOf(4, { zero: true, faults }), whole);
    expect(ends[0]!.sizes).toEqual([4, 3, 2, 1]);
  });

  it('after a loss in an exchange and a join, with scaled losses', async () => {
    const plan = planOf(3, {
      ...{ ...long, zero: true, scaled: true, faults: { 1: fault(4, 'exchanging') }, joins: { 3: 1 } },
      until: { size: 3, steps: 6, view: 2 },
    });
    const ends = await checkReplay(4, plan, whole);
    expect(ends[0]!.sizes).toEqual([3, 2, 3]);
  });

  it('after both ranks that keep a shard have left together', async () => {
    const faults = { 1: fault(3, 'forward', 'SIGTERM'), 2: fault(3, 'forward', 'SIGTERM') };
    const ends = await checkReplay(4, planOf(4, { zero: true, stepMs: 20, faults }), whole);
    expect(ends.map(({ sizes }) => sizes.at(-1))).toEqual([2, 2]);
  });
});
