// Ranks of a job are killed at each point of a step, each in turn, and from outside at any instant.
import { describe, it } from 'vitest';
import type { Fault } from '../../fixtures/train.ts';
import { checkEnd, checkKilled, checkLedger, planOf, points, run, trainAlone } from '../../support/jobs.ts';

trainAlone();

describe('a rank is killed', () => {
  for (const at of points)
    it(`${at} a step`, { timeout: 60_000 }, async () => {
      await checkKilled(0, 3, at);
      await checkKilled(1, 6, at);
      await checkKilled(2, 0, at);
    });
});

describe('ranks are killed from outside, at any instant', () => {
  // Two of four ranks, some milliseconds after steps 2 and 3 have begun; a step takes about 3 ms.
  for (const [first, second] of [
    [0, 0],
    [1, 1],
    [2, 4],
    [3, 1],
    [5, 6],
    [9, 7],
    [14, 13],
  ] as const)
    it(`${first} and ${second} ms into the training`, { timeout: 60_000 }, async () => {
      const fault = (step: number, delayMs: number): Fault => ({
        step,
        at: 'entering',
        do: 'SIGKILL',
        delayMs,
      });
      const faults = { 0: fault(2, first), 2: fault(3, second) };
      const results = await run(4, planOf(4, { faults, stepMs: 3 }));
      checkEnd(results, [1, 3]);
      // A process is killed only if the job has lasted that long.
      checkLedger(results);
    });
});
