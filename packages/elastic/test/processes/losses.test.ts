// Members of a custom loop, in processes of their own, are killed, stopped, join and leave, also while a view changes.
// The survivors have to agree on every step: its number, its view, and the value that all steps before it led to.
import { type RankResult, startRanks } from '@ringwise/testing';
import { describe, expect, test } from 'vitest';
import type { Fault, Plan, Trained } from '../fixtures/loop.ts';

const loop = new URL('../fixtures/loop.ts', import.meta.url);
// Deadlines for a busy machine: ends of processes are noticed without them.
const options = { size: 4, settleMs: 5_000, stallMs: 20_000, joinTimeoutMs: 20_000, connectMs: 10_000 };
const steps = 12;

async function run(processes: number, parts: Partial<Plan>): Promise<RankResult[]> {
  const plan: Plan = { steps, options, faults: {}, joins: {}, stepMs: 10, ...parts };
  const running = await startRanks(processes, loop, 'train', { args: [plan], timeoutMs: 28_000 });
  return await running.results;
}

/** Checks that all that ended well agree on the steps that they did together. Returns what they report, by rank. */
function agreed(results: readonly RankResult[], killed: readonly number[]): Map<number, Trained> {
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

const kill = (step: number, at: Fault['at']): Fault => ({ step, at, do: 'SIGKILL' });

describe('a killed member costs the others no step', () => {
  test.each(['before reduce', 'before vote', 'after vote'] as const)('killed %s', async (at) => {
    const trained = agreed(await run(4, { faults: { 2: kill(5, at) } }), [2]);
    expect(trained.size).toBe(3);
    for (const { end, rows, views } of trained.values()) {
      expect(end).toBe('done');
      expect(rows.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, index) => index + 1));
      expect(views.at(-1)!.ids).toEqual(['0.0', '1.0', '3.0']);
    }
  });

  test('the one with the lowest slot', async () => {
    const trained = agreed(await run(4, { faults: { 0: kill(5, 'before vote') } }), [0]);
    for (const { end, views } of trained.values()) {
      expect(end).toBe('done');
      expect(views.at(-1)!.ids).toEqual(['1.0', '2.0', '3.0']);
    }
  });

  test('two at once', async () => {
    const faults = { 0: kill(4, 'before reduce'), 3: kill(4, 'before reduce') };
    const trained = agreed(await run(4, { faults }), [0, 3]);
    for (const { end, views } of trained.values()) {
      expect(end).toBe('done');
      expect(views.at(-1)!.ids).toEqual(['1.0', '2.0']);
    }
  });

  test('a second one while the view changes', async () => {
    const faults = { 1: kill(4, 'before reduce'), 2: kill(4, 'in change') };
    const trained = agreed(await run(4, { faults }), [1, 2]);
    for (const { end, views } of trained.values()) {
      expect(end).toBe('done');
      expect(views.at(-1)!.ids).toEqual(['0.0', '3.0']);
    }
  });
});

test('a process that joins gets the state, and the others lose no step', async () => {
  const results = await run(5, { joins: { 4: 20 }, stepMs: 20, steps: 120 });
  const trained = agreed(results, []);
  const joiner = trained.get(4)!;
  expect(joiner.end).toBe('done');
  expect(joiner.views[0]!.ids).toHaveLength(5);
  expect(joiner.rows[0]!.step).toBeGreaterThan(0);
  expect(joiner.rows.at(-1)).toEqual(trained.get(0)!.rows.at(-1));
});

test('a member that leaves takes part in its last step', async () => {
  const trained = agreed(await run(4, { faults: { 1: { step: 5, at: 'before reduce', do: 'leave' } } }), []);
  const leaver = trained.get(1)!;
  expect(leaver.end).toBe('left');
  expect(leaver.rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  for (const rank of [0, 2, 3]) {
    expect(trained.get(rank)!.end).toBe('done');
    expect(trained.get(rank)!.views.at(-1)!.ids).toEqual(['0.0', '2.0', '3.0']);
  }
});

test('a stopped member is left out, and finds that out when it goes on', async () => {
  const results = await run(4, {
    options: { ...options, settleMs: 1_000, stallMs: 2_000, timeoutMs: 2_000 },
    faults: { 3: { step: 4, at: 'before reduce', do: 'SIGSTOP' } },
  });
  const trained = agreed(results, []);
  const ends = [0, 1, 2, 3].map((rank) => trained.get(rank)!.end);
  expect(ends).toEqual(['done', 'done', 'done', 'ERR_ELASTIC_LEFT_OUT']);
});

test('a member whose last vote failed learns that the step is final, although the others have ended', async () => {
  const results = await run(3, {
    options: { ...options, size: 3, min: 2, joinTimeoutMs: 60_000 },
    faults: { 1: { step: steps - 1, at: 'in vote', do: 'lose' } },
  });
  const ends = results.map(({ status, value, error, stderr }) => {
    expect(status, `${error?.message} ${stderr}`).toBe('ok');
    return value as Trained;
  });
  expect(ends.map(({ end }) => end)).toEqual(['done', 'done', 'done']);
  expect(ends[1]!.views.at(-1)).toMatchObject({ ids: ['1.0'], decision: 'commit' });
  for (const { rows } of ends) expect(rows.at(-1)!.value).toBe(ends[0]!.rows.at(-1)!.value);
});

test('members end with a sentence when the process that keeps the store is lost before a change', async () => {
  const plan = { steps: 1_000, options: { ...options, size: 3 }, joins: {}, stepMs: 10 };
  const faults = { 1: kill(100, 'before reduce') };
  const args = [{ ...plan, faults }];
  const running = await startRanks(4, loop, 'withoutStore', { args, timeoutMs: 28_000 });
  const results = await running.results;
  expect(results.map(({ signal }) => signal)).toEqual(['SIGKILL', null, 'SIGKILL', null]);
  for (const rank of [1, 3]) {
    const { value, error, stderr } = results[rank]!;
    // Steps need no store; the change after the loss of a member does.
    expect(value, `${error?.message} ${stderr}`).toMatchObject({ end: 'ERR_ELASTIC_STORE' });
    expect((value as Trained).rows).toHaveLength(100);
  }
});

test('a member that is stopped while the view changes is left out', async () => {
  const results = await run(4, {
    options: { ...options, settleMs: 1_000, stallMs: 2_000, timeoutMs: 2_000, connectMs: 2_000 },
    faults: { 1: kill(4, 'before reduce'), 3: { step: 4, at: 'in change', do: 'SIGSTOP' } },
  });
  const trained = agreed(results, [1]);
  expect([0, 2, 3].map((rank) => trained.get(rank)!.end)).toEqual(['done', 'done', 'ERR_ELASTIC_LEFT_OUT']);
  expect(trained.get(0)!.views.at(-1)!.ids).toEqual(['0.0', '2.0']);
});

test('a member that leaves and one that joins while the view changes after a loss', async () => {
  const results = await run(5, {
    ...{ joins: { 4: 20 }, stepMs: 20, steps: 120 },
    faults: { 1: kill(20, 'before reduce'), 2: { step: 20, at: 'in change', do: 'leave' } },
  });
  const trained = agreed(results, [1]);
  expect([0, 2, 3, 4].map((rank) => trained.get(rank)!.end)).toEqual(['done', 'left', 'done', 'done']);
  expect(trained.get(0)!.views.at(-1)!.ids).toEqual(['0.0', '3.0', '4.0']);
  expect(trained.get(4)!.rows.at(-1)).toEqual(trained.get(0)!.rows.at(-1));
});
