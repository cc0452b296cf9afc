// Jobs of real processes that are killed, leave and join. Each sample of an epoch is used once, all members hold the
// same bits, and the result is that of a job without faults, except for rounding.
import { type RankResult, values, withRanks } from '@ringwise/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Fault, Plan, Point, Trained } from '../fixtures/train.ts';

const fixture = new URL('../fixtures/train.ts', import.meta.url);
const epochs = 2;
const samples = 50;
const globalBatch = 12;
const steps = Math.ceil(samples / globalBatch) * epochs;

const planOf = (size: number, rest: Partial<Plan> = {}): Plan => ({
  options: { size, settleMs: 500 },
  ...{ samples, globalBatch, microBatch: 4, epochs },
  ...rest,
});

const run = (size: number, plan: Plan) =>
  withRanks(size, fixture, 'train', { args: [plan], timeoutMs: 60_000 });

/** Checks that the final steps have used each sample of each epoch once. `results` are those of all processes. */
function checkLedger(results: readonly RankResult[]): void {
  const lines = results.flatMap(({ stdout }) => stdout.split('\n').map((line) => line.split(' ')));
  const finals = new Map(lines.filter(([kind]) => kind === 'final').map(([, step, view]) => [step!, view!]));
  expect(finals.size).toBe(steps);
  const used = Array.from({ length: epochs }, () => new Uint8Array(samples));
  for (const [step, view] of finals) {
    const tried = lines.filter(([kind, s, v]) => kind === 'tried' && s === step && v === view);
    for (const [, , , epoch, , , indices] of tried)
      for (const index of indices!.split(',')) used[Number(epoch)]![Number(index)]!++;
  }
  for (const counts of used) expect([...counts].every((count) => count === 1)).toBe(true);
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i]!)), 0);
}

let alone: Trained;
beforeAll(async () => {
  const results = await run(1, planOf(1));
  [alone] = values<Trained>(results) as [Trained];
  checkLedger(results);
  expect(alone.finalSteps).toBe(steps);
}, 60_000);

/** Checks the members that have trained to the end. */
function checkEnd(results: readonly RankResult[], ranks: readonly number[]): Trained[] {
  const ends = values<Trained>(results.filter(({ rank }) => ranks.includes(rank)));
  for (const end of ends) {
    expect(end.state).toEqual(ends[0]!.state);
    expect(end.lr).toBe(alone.lr);
    expect(end.finalSteps).toBe(steps);
    expect(largestDifference(end.state, alone.state)).toBeLessThan(1e-5);
  }
  return ends;
}

it.each([2, 3, 5])('%i ranks train as one', { timeout: 60_000 }, async (size) => {
  const results = await run(size, planOf(size));
  const ends = checkEnd(results, [...Array(size).keys()]);
  checkLedger(results);
  for (const { losses } of ends)
    for (const [i, loss] of losses.entries()) expect(loss).toBeCloseTo(alone.losses[i]!, 4);
});

describe('a rank is killed', () => {
  const points: Point[] = ['forward', 'backward', 'averaged', 'voted', 'between', 'entering'];
  for (const at of points)
    it(`${at} a step`, { timeout: 60_000 }, async () => {
      for (const [lost, step] of [
        [0, 3],
        [1, 4],
        [2, 0],
      ] as const) {
        const fault: Fault = { step, at, do: 'SIGKILL' };
        const results = await run(3, planOf(3, { faults: { [lost]: fault } }));
        const others = [0, 1, 2].filter((rank) => rank !== lost);
        for (const { sizes } of checkEnd(results, others)) expect(sizes).toEqual([3, 2]);
        expect(results[lost]!.signal).toBe('SIGKILL');
        checkLedger(results);
      }
    });

  it('and another one after it, until one is left', { timeout: 60_000 }, async () => {
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
