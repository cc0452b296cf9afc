// Ranks of a job are killed at each point of a step, each in turn, and from outside at any instant.
import { describe, expect, it } from 'vitest';
import type { Fault, Point } from '../../fixtures/train.ts';
import { checkEnd, checkLedger, planOf, run, trainAlone } from '../../support/jobs.ts';

trainAlone();

describe('a rank is killed', () => {
  const points: Point[] = ['forward', 'backward', 'averaged', 'reduced', 'voted', 'between', 'entering'];
  for (const at of points)
    it(`${at} a step`, { timeout: 60_000 }, async () => {
      for (const [lost, step] of [
        [0, 3],
        [1, 6],
        [2, 0],
      ] as const) {
        const fault: Fault = { step, at, do: 'SIGKILL' };
        const results = await run(3, planOf(3, { faults: { [lost]: fault } }));
        const others = [0, 1, 2].filter((rank) => rank !== lost);
        for (const { sizes, log } of checkEnd(results, others)) {
          expect(sizes).toEqual([3, 2]);
          // All members had the averages, or none may have applied them.
          if (at === 'reduced') expect(log[1]!.decision).toBe('commit');
          if (at === 'forward') expect(log[1]!.decision).toBe('redo');
        }
        expect(results[lost]!.signal).toBe('SIGKILL');
        checkLedger(results);
      }
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
