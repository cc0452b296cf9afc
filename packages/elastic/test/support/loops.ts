// Starts jobs of test/fixtures/loop.ts, and checks what their members have done.
import { type RankResult, startRanks } from '@ringwise/testing';
import { expect } from 'vitest';
import type { Fault, Plan, Trained } from '../fixtures/loop.ts';

export const loop = new URL('../fixtures/loop.ts', import.meta.url);
/** Deadlines for a busy machine: ends of processes are noticed without them. */
export const options = {
  size: 4,
  settleMs: 10_000,
  stallMs: 60_000,
  joinTimeoutMs: 60_000,
  connectMs: 60_000,
};
/** Number of steps of a job. */
export const loopSteps = 12;

export async function runLoop(processes: number, parts: Partial<Plan>): Promise<RankResult[]> {
  const plan: Plan = { steps: loopSteps, options, faults: {}, joins: {}, stepMs: 10, ...parts };
  const running = await startRanks(processes, loop, 'train', { args: [plan] });
  return await running.results;
}

/** Checks that all that ended well agree on the steps that they did together. Returns what they report, by rank. */
export function agreed(results: readonly RankResult[], killed: readonly number[]): Map<number, Trained> {
  const trained = new Map<number, Trained>();
  for (const { rank, status, value, signal, error, stderr } of results) {
    if (killed.includes(rank)) expect(signal, `rank ${rank}: ${stderr}`).toBe('SIGKILL');
    else {
      expect(status, `rank ${rank}: ${error?.message} ${stderr}`).toBe('ok');
      trained.set(rank, value as Trained);
    }
  }
  const rows = new Map<number, unknown>();
  for (const { rows: own } of trained.values()) {
    for (const row of own) {
      if (!rows.has(row.step)) rows.set(row.step, row);
      expect(row).toEqual(rows.get(row.step));
    }
  }
  return trained;
}

export const kill = (step: number, at: Fault['at']): Fault => ({ step, at, do: 'SIGKILL' });
