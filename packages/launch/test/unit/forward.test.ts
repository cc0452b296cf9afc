import { MemoryStore } from '@ringwise/store';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RankEvent } from '../../src/monitor/events.ts';
import { collect, forward } from '../../src/monitor/forward.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});
afterEach(() => store.close());

it('forwards as much of a batch as a store takes, and always the end of a rank', async () => {
  const got: RankEvent[] = [];
  const collecting = collect(store, (event) => got.push(event));
  const forwarding = forward(store);
  const text = 'x'.repeat(1 << 20);
  const values = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`${i}`.padEnd(100, '.'), i]));
  for (let i = 0; i < 20; i++) forwarding.observe({ kind: 'line', rank: 0, text });
  for (let step = 0; step < 5_000; step++) {
    forwarding.observe({ kind: 'report', rank: 0, report: { clockMs: 0, step, values } });
  }
  forwarding.observe({ kind: 'ended', rank: 0, exitCode: 0, signal: null, hasFailed: false });
  await forwarding.close();
  await collecting.close();
  expect(got.filter(({ kind }) => kind === 'line')).toHaveLength(20);
  expect(got.filter(({ kind }) => kind === 'report').length).toBeGreaterThan(100);
  expect(got.at(-1)).toMatchObject({ kind: 'ended' });
});
