// Members of a custom loop are killed, stopped, join and leave. The survivors have to agree on every step.
import { startRanks } from '@ringwise/testing';
import { expect, test } from 'vitest';
import type { Plan, Trained } from '../fixtures/loop.ts';

const loop = new URL('../fixtures/loop.ts', import.meta.url);
const options = { size: 4, settleMs: 3_000, stallMs: 8_000, joinTimeoutMs: 20_000, connectMs: 8_000 };
const plan = (parts: Partial<Plan>): Plan => ({
  steps: 12,
  options,
  faults: {},
  joins: {},
  stepMs: 10,
  ...parts,
});

test('a killed rank costs the others one step', async () => {
  const running = await startRanks(4, loop, 'train', {
    args: [plan({ faults: { 2: { step: 5, at: 'before reduce', do: 'SIGKILL' } } })],
  });
  const results = await running.results;
  expect(results.map((r) => r.status)).toEqual(['ok', 'ok', 'exited', 'ok']);
  const trained = results.filter((r) => r.status === 'ok').map((r) => r.value as Trained);
  for (const each of trained) expect(each.rows).toEqual(trained[0]!.rows);
});
