// Starts jobs of test/fixtures/train.ts, and checks what they have done.
import { type RankResult, values, withRanks } from '@ringwise/testing';
import { beforeAll, expect } from 'vitest';
import type { Fault, Plan, Point, Trained } from '../fixtures/train.ts';

const fixture = new URL('../fixtures/train.ts', import.meta.url);
const epochs = 2;
const samples = 50;
const globalBatch = 12;
export const steps = Math.ceil(samples / globalBatch) * epochs;

/** Parts of the plan of a job that ends when a view has trained for some steps. */
export const long = { epochs: 10_000, stepMs: 5 };

/**
 * Deadlines for a busy machine, on which a process may get no processor for seconds. Members on one host know for
 * certain that another one has ended, and do not wait for it.
 */
export const patience = { settleMs: 10_000, stallMs: 60_000 } as const;
/** The same for members that act as if each were on a host of its own: each loss of one takes `settleMs`. */
const apart = { ...patience, settleMs: 3_000 };

export const planOf = (size: number, rest: Partial<Plan> = {}): Plan => ({
  ...{ samples, globalBatch, microBatch: 4, epochs },
  ...rest,
  options: { size, ...(rest.hook === 'int8' ? apart : patience), ...rest.options },
});

export const run = (size: number, plan: Plan) => withRanks(size, fixture, 'train', { args: [plan] });

/**
 * Checks that the final steps have used each sample of each epoch once, up to the step `count`. `results` are those of
 * all processes.
 */
export function checkLedger(results: readonly RankResult[], count = steps): void {
  const lines = results.flatMap(({ stdout }) => stdout.split('\n').map((line) => line.split(' ')));
  const finals = new Map(lines.filter(([kind]) => kind === 'final').map(([, step, view]) => [step!, view!]));
  expect([...finals.keys()].map(Number).sort((a, b) => a - b)).toEqual([...Array(count).keys()]);
  const perEpoch = Math.ceil(samples / globalBatch);
  const used = Array.from({ length: Math.ceil(count / perEpoch) }, () => new Uint8Array(samples));
  for (const [step, view] of finals) {
    const tried = lines.filter(([kind, s, v]) => kind === 'tried' && s === step && v === view);
    for (const [, , , epoch, , , indices] of tried)
      for (const index of indices!.split(',')) used[Number(epoch)]![Number(index)]!++;
  }
  for (const [epoch, counts] of used.entries()) {
    expect(Math.max(...counts)).toBe(1);
    const expected = Math.min(samples, (count - epoch * perEpoch) * globalBatch);
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(expected);
  }
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((largest, value, i) => Math.max(largest, Math.abs(value - b[i]!)), 0);
}

let alone: Trained;

/** Trains once without faults before the tests of a file, for checkEnd(). */
export function trainAlone(): void {
  beforeAll(async () => {
    const results = await run(1, planOf(1));
    [alone] = values<Trained>(results) as [Trained];
    checkLedger(results);
    expect(alone.finalSteps).toBe(steps);
  });
}

/** Returns the losses of the job that trainAlone() has run. */
export const lossesAlone = (): readonly number[] => alone.losses;

/** Checks the members that have trained to the end. */
export function checkEnd(results: readonly RankResult[], ranks: readonly number[]): Trained[] {
  const ends = values<Trained>(results.filter(({ rank }) => ranks.includes(rank)));
  for (const end of ends) {
    expect(end.state).toEqual(ends[0]!.state);
    expect(end.lr).toBe(alone.lr);
    expect(end.finalSteps).toBe(steps);
    expect(largestDifference(end.state, alone.state)).toBeLessThan(1e-5);
  }
  return ends;
}

/** Checks a job of any number of steps against one process that takes as many. Returns the ends of `ranks`. */
export async function checkSteps(
  results: readonly RankResult[],
  ranks: readonly number[],
  plan: Plan,
): Promise<Trained[]> {
  const ends = values<Trained>(results.filter(({ rank }) => ranks.includes(rank)));
  const [{ finalSteps }] = ends as [Trained];
  const { options: _, faults: __, joins: ___, until: ____, ...rest } = plan;
  const [expected] = values<Trained>(
    await run(1, { ...rest, options: { size: 1 }, maxSteps: finalSteps }),
  ) as [Trained];
  for (const end of ends) {
    expect(end.state).toEqual(ends[0]!.state);
    expect(end.finalSteps).toBe(finalSteps);
    expect(end.lr).toBe(expected.lr);
    expect(largestDifference(end.state, expected.state)).toBeLessThan(1e-4);
  }
  checkLedger(results, finalSteps);
  return ends;
}

/**
 * Runs a job of `size` processes, and compares its bits with those of a replay that loses no rank. The replay differs
 * from the plan by `other`. Returns the ends of the members that have trained to the end.
 */
export async function checkReplay(size: number, plan: Plan, other: Partial<Plan> = {}): Promise<Trained[]> {
  const results = await run(size, plan);
  const isLost = (rank: number) => plan.faults?.[rank]?.do === 'SIGKILL';
  for (const { rank, signal } of results) if (isLost(rank)) expect(signal).toBe('SIGKILL');
  const members = values<Trained>(results.filter(({ rank }) => !isLost(rank)));
  const ends = members.filter(({ hasLeft }) => !hasLeft);
  const [{ finalSteps, state, lr }] = ends as [Trained];
  for (const end of ends) expect(end.state).toEqual(state);
  checkLedger(results, finalSteps);
  const log = members.flatMap((end) => end.log);
  const { options: _, faults: __, joins: ___, until: ____, ...rest } = plan;
  const most = Math.max(...log.map((entry) => entry.size));
  const replayed = values<Trained>(
    await run(most, { ...rest, ...other, options: { replay: log }, maxSteps: finalSteps }),
  ).filter(({ hasLeft }) => !hasLeft);
  expect(replayed.length).toBeGreaterThan(0);
  const inLast = Math.max(...log.map(({ step }) => step)) - finalSteps;
  for (const end of replayed) {
    expect(end.state).toEqual(state);
    expect(end.lr).toBe(lr);
    // All of them are members of the last view.
    expect(end.losses.slice(inLast)).toEqual(ends[0]!.losses.slice(inLast));
  }
  return ends;
}

/** Runs a job of 3 ranks of which one is killed at a point of a step, and checks that the others have gone on. */
export async function checkKilled(lost: number, step: number, at: Point): Promise<void> {
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

/** Every point of a step at which a rank is killed. */
export const points: readonly Point[] = [
  ...(['forward', 'backward', 'averaged', 'reduced', 'voted', 'between', 'entering'] as const),
];
