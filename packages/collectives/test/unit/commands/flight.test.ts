// Tests traces of records from several hosts whose clocks differ. packages/ringwise/test has records of real ranks.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type FlightDump, readDumps, traceOf } from '../../../src/commands/flight.ts';
import type { FlightEntry } from '../../../src/index.ts';
import { loopbackGroups } from '../../../src/index.ts';

/** Returns the dumps of three ranks, two of them on one host. The clock of the other host is `aheadMs` ahead. */
function dumpsOf(records: readonly (readonly FlightEntry[])[], aheadMs: number): FlightDump[] {
  return records.map((entries, rank) => {
    const [host, ms] = rank === 2 ? ['far', aheadMs] : ['near', 0];
    const shifted = entries.map((entry) => ({
      ...entry,
      queuedMs: entry.queuedMs + ms,
      startedMs: entry.startedMs! + ms,
      endedMs: entry.endedMs! + ms,
    }));
    const whose = { group: 'world', rank, size: 3, host, clock: host, pid: 100 + rank, index: 0 };
    const when = { reason: 'SIGUSR2', nowMs: performance.now() + ms, unixMs: Date.now() };
    return { ringwise: 'flight record', ...whose, ...when, entries: shifted };
  });
}

describe('reading records', () => {
  it('refuses a file without entries, and one that is no record', () => {
    const folder = mkdtempSync(join(tmpdir(), 'ringwise-flight-'));
    try {
      const file = join(folder, 'cut.json');
      writeFileSync(file, JSON.stringify({ ringwise: 'flight record', group: 'world' }));
      expect(() => readDumps([file])).toThrow(/cut\.json is no whole flight record: it has no entries/);
      writeFileSync(file, '{}');
      expect(() => readDumps([folder])).toThrow(/cut\.json is no flight record/);
      const missing = join(folder, 'missing');
      expect(() => readDumps([missing])).toThrow(`ringwise flight: no file or folder ${missing}. See`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a trace', () => {
  const record = async () => {
    const groups = loopbackGroups(3, { name: 'world' });
    for (let step = 0; step < 3; step++) {
      await Promise.all(groups.map((group) => group.allReduce(new Float32Array(4))));
    }
    await Promise.all([groups[2]!.send(new Uint8Array(1), 0), groups[0]!.recv(new Uint8Array(1), 2)]);
    return groups.map((group) => group.flightRecord());
  };

  it('aligns the clocks of hosts by the operations that ended on both', async () => {
    const slices = traceOf(dumpsOf(await record(), 777_000)).filter(({ ph }) => ph === 'X');
    expect(slices).toHaveLength(3 * 3 + 2);
    for (const seq of [0, 1, 2]) {
      const ends = slices.filter(({ name }) => name === `allReduce #${seq}`).map(({ ts, dur }) => ts! + dur!);
      expect(Math.max(...ends) - Math.min(...ends)).toBeLessThan(100_000);
    }
  });

  it('has a process for each thread if ranks are threads', async () => {
    const threads = dumpsOf(await record(), 0).map((dump) => ({
      ...dump,
      ...{ host: 'near', clock: 'near', pid: 100, thread: dump.rank + 1 },
    }));
    const events = traceOf(threads);
    const names = (name: string) =>
      events.filter((event) => event.name === name).map(({ args }) => args!.name);
    expect(names('process_name')).toEqual([0, 1, 2].map((rank) => `rank ${rank} of world (near, pid 100)`));
    expect(names('thread_name')).not.toContain('world 2');
    expect(new Set(events.filter(({ ph }) => ph === 'X').map(({ pid }) => pid)).size).toBe(3);
    const arrows = events.filter(({ ph, name }) => ph === 's' && name.startsWith('allReduce'));
    expect(arrows).toHaveLength(3 * 2);
  });

  it('goes by the wall clocks if hosts have no collective in common', async () => {
    const messages = (await record()).map((entries) => entries.filter(({ peer }) => peer !== null));
    const [send, recv] = traceOf(dumpsOf(messages, 777_000)).filter(({ ph }) => ph === 'X');
    expect(Math.abs(send!.ts! - recv!.ts!)).toBeLessThan(100_000);
  });
});
