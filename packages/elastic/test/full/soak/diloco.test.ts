// Members that train apart are killed from outside at any instant after the job has its first view: while they connect,
// get the first state, take inner steps, average, or end. The others end with equal parameters.
import { startRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { Ended } from '../../fixtures/diloco.ts';

const programs = new URL('../../fixtures/diloco.ts', import.meta.url);
const options = {
  ...{ size: 3, settleMs: 3_000, stallMs: 8_000 },
  ...{ lastCallMs: 60_000, joinTimeoutMs: 20_000, connectMs: 120_000 },
};

describe.each([
  { fragments: 1, delay: 0 },
  { fragments: 3, delay: 2 },
])('with $fragments fragments, $delay steps on their way', (how) => {
  // A training takes about two tenths of a second on an idle machine.
  const delays = Array.from({ length: 16 }, (_, i) => i * i);
  it.each(delays)('a member is killed after %d ms', { timeout: 70_000 }, async (delayMs) => {
    const kill = { slot: delays.indexOf(delayMs) % 3, delayMs };
    const running = await startRanks(3, programs, 'killed', {
      args: [options, kill, how],
      timeoutMs: 60_000,
    });
    const results = await running.results;
    const others = results.filter(({ rank }) => rank !== kill.slot);
    for (const { rank, status, error, stderr } of others)
      expect(status, `rank ${rank}: ${error?.message} ${stderr}`).toBe('ok');
    const [first, second] = others.map(({ value }) => value as Ended);
    expect(second!.net).toEqual(first!.net);
    expect([second!.steps, second!.averages]).toEqual([first!.steps, first!.averages]);
    expect(first!.steps).toBe(60);
  });
});
