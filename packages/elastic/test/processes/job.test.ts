// Jobs of real processes that are killed, leave and join. Each sample of an epoch is used once, all members hold the
// same bits, and the result is that of a job without faults, except for rounding.
import { values } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { Fault, Plan, Point, Trained } from '../fixtures/train.ts';
import {
  checkEnd,
  checkKilled,
  checkLedger,
  checkReplay,
  checkSteps,
  long,
  lossesAlone,
  planOf,
  points,
  run,
  steps,
  trainAlone,
} from '../support/jobs.ts';

trainAlone();

it.each([2, 3, 5])('%i ranks train as one', async (size) => {
  const results = await run(size, planOf(size));
  const ends = checkEnd(results, [...Array(size).keys()]);
  checkLedger(results);
  for (const { losses } of ends)
    for (const [i, loss] of losses.entries()) expect(loss).toBeCloseTo(lossesAlone()[i]!, 4);
});

describe('a rank is killed', () => {
  for (const at of points)
    it(`${at} a step`, async () => {
      // Another rank at each point, in another step; test/full has all of them.
      const lost = points.indexOf(at) % 3;
      await checkKilled(lost, [3, 6, 0][lost]!, at);
    });

  it('and another one after it, until one is left', async () => {
    const faults: Record<number, Fault> = {
      0: { step: 2, at: 'backward', do: 'SIGKILL' },
      2: { step: 2, at: 'averaged', do: 'SIGKILL' },
      1: { step: 6, at: 'voted', do: 'SIGKILL' },
    };
    const results = await run(4, planOf(4, { faults }));
    checkEnd(results, [3]);
    checkLedger(results);
  });
});

describe('a process joins', () => {
  it('gets the state, and takes part', async () => {
    const plan = planOf(2, { ...long, joins: { 2: 0 }, until: { size: 3, steps: 8 } });
    const results = await run(3, plan);
    const ends = await checkSteps(results, [0, 1, 2], plan);
    expect(ends[0]!.sizes).toEqual([2, 3]);
    expect(ends[2]!.sizes).toEqual([3]);
  });

  it('with a large state, in many chunks from both members', async () => {
    const plan = planOf(2, { ...long, joins: { 2: 0 }, until: { size: 3, steps: 8 }, ballast: 12 << 20 });
    await checkSteps(await run(3, plan), [0, 1, 2], plan);
  });

  it('in place of one that was killed', async () => {
    const plan = planOf(3, {
      ...long,
      ...{ faults: { 0: { step: 2, at: 'backward', do: 'SIGKILL' } }, joins: { 3: 1 } },
      until: { size: 3, steps: 8 },
      stepMs: 50,
    });
    // The three founders also have had size 3: process 0 is killed before that ends the loop.
    const ends = await checkSteps(await run(4, plan), [1, 2, 3], plan);
    expect(ends[0]!.sizes).toEqual([3, 2, 3]);
  });
});

it('a process that was admitted when the training ended takes no part, and does not fail', async () => {
  const results = await run(2, planOf(1, { ...long, joins: { 1: 0 }, untilAdmitted: true }));
  const [founder, late] = values<Trained>(results) as [Trained, Trained];
  expect(founder).toMatchObject({ hasLeft: false, sizes: [1] });
  expect(late).toMatchObject({ hasLeft: true, sizes: [], losses: [] });
  expect(results[1]!.stderr).toMatch(
    /RINGWISE_TRAINING_OVER.*ddp: the training is over: its members have ended after step/,
  );
});

it('goes on when a member leaves by SIGTERM, after its step', async () => {
  const faults: Record<number, Fault> = { 1: { step: 3, at: 'forward', do: 'SIGTERM' } };
  const results = await run(3, planOf(3, { faults, stepMs: 20 }));
  for (const { sizes, kept } of checkEnd(results, [0, 2])) {
    expect(sizes).toEqual([3, 2]);
    expect(kept).toMatch(
      /^barrier: the group is closed \(group "view 0", .*read job\.group or membership\.group again/,
    );
  }
  const [left] = values<Trained>([results[1]!]) as [Trained];
  expect(left.hasLeft).toBe(true);
  expect(left.finalSteps).toBeLessThan(steps);
  checkLedger(results);
});

describe('a job is replayed from its membership log, without its losses, to the same bits', () => {
  const kill = (step: number, at: Point): Fault => ({ step, at, do: 'SIGKILL' });
  const jobs: Record<string, { readonly size: number; readonly plan: Plan }> = {
    'of losses at all points, with running statistics': {
      size: 5,
      plan: planOf(5, {
        batchNorm: true,
        faults: { 0: kill(1, 'backward'), 3: kill(3, 'reduced'), 1: kill(5, 'forward'), 2: kill(8, 'voted') },
      }),
    },
    'of a loss and a process that joins': {
      size: 4,
      plan: planOf(3, {
        ...long,
        ...{ batchNorm: true, stepMs: 30, faults: { 0: kill(2, 'averaged') }, joins: { 3: 1 } },
        until: { size: 3, steps: 6 },
      }),
    },
  };
  for (const [name, { size, plan }] of Object.entries(jobs))
    it(name, async () => {
      await checkReplay(size, plan);
    });
});
