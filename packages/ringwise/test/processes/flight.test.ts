// Tests flight records of real ranks, written while the ranks hang and when they fail, and merged by the real command.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readDumps, type TraceEvent } from '@ringwise/collectives/flight';
import { withDeadlines } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { command, numbersFrom, startJob } from '../support/command.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-flight-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const calls = [
  'allReduce 0',
  'broadcast 1',
  'allReduce 2',
  'broadcast 3',
  'allReduce 4',
  'broadcast 5',
  'barrier 6',
];

const records = (path: string) => readdirSync(path).filter((name) => name.endsWith('.json'));

function trace(): TraceEvent[] {
  const argv = [command, 'flight', folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, {
    encoding: 'utf8',
    timeout: 120_000,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return (JSON.parse(stdout) as { traceEvents: TraceEvent[] }).traceEvents;
}

describe('ranks that hang', () => {
  it('write their records on SIGUSR2, also from inside a loop or a blocking call', async () => {
    const job = startJob(3, 'hangs.ts', ['60000'], { RINGWISE_FLIGHT_DIR: folder });
    const pids = await numbersFrom(job, 'pid', 3);
    // Ranks 0 and 2 may not have entered the barrier yet, and a blocking call records its call site only once it has
    // waited for long. So the signals are repeated until both records have the call site.
    await vi.waitFor(
      () => {
        for (const pid of pids.values()) process.kill(pid, 'SIGUSR2');
        expect(records(folder)).toHaveLength(3);
        expect(
          readDumps([folder]).flatMap(({ entries }) =>
            entries.filter(({ seq, callSite }) => seq === 7 && callSite !== null),
          ),
        ).toHaveLength(2);
      },
      { timeout: 120_000, interval: 50 },
    );
    const dumps = readDumps([folder]).sort((a, b) => a.rank - b.rank);
    for (const [rank, dump] of dumps.entries()) {
      expect(dump).toMatchObject({ group: 'world', rank, size: 3, pid: pids.get(rank), reason: 'SIGUSR2' });
      const collectives = dump.entries.filter(({ peer }) => peer === null);
      expect(collectives.map(({ verb, seq }) => `${verb} ${seq}`)).toEqual(
        rank === 1 ? calls : [...calls, 'barrier 7'],
      );
      expect(collectives.map(({ state }) => state)).toEqual(
        calls.map(() => 'done').concat(rank === 1 ? [] : ['running']),
      );
      expect(dump.entries.filter(({ state }) => state === 'done').every(({ algorithm }) => algorithm)).toBe(
        true,
      );
    }
    expect(dumps[0]!.entries.at(-1)).toMatchObject({ verb: 'barrier', callSite: 'hangs.ts:15' });
    expect(dumps[2]!.entries.at(-1)).toMatchObject({ verb: 'barrier', callSite: 'hangs.ts:16' });

    const events = trace();
    for (const call of calls) {
      const [verb, seq] = call.split(' ');
      const slices = events.filter(({ ph, name }) => ph === 'X' && name === `${verb} #${seq}`);
      expect(
        slices
          .filter(({ cat }) => cat === verb)
          .map(({ pid }) => pid)
          .sort(),
      ).toEqual([0, 1, 2]);
    }
    // 7 collectives of 3 ranks with 2 arrows each; 1 arrow for the barrier that 2 ranks entered; 3 for the messages.
    expectArrows(events, 7 * 2 + 1 + 3);
  });

  it('write them when the deadline is over, and the error says where', async () => {
    await withDeadlines([1_000, 15_000], async (ms) => {
      const own = join(folder, `${ms}`);
      mkdirSync(own);
      const job = startJob(3, 'hangs.ts', [`${ms}`], { RINGWISE_FLIGHT_DIR: own });
      const pids = await numbersFrom(job, 'pid', 3);
      await expect.poll(() => records(own)).toHaveLength(3);
      process.kill(pids.get(1)!, 'SIGKILL');
      expect(await job.exitCode).not.toBe(0);
      for (const { reason } of readDumps([own])) expect(reason).toMatch(/^rank 1 never entered barrier #7/);
      expect(job.out.stderr).toContain(` Flight records of its ranks are in ${own}.`);
    });
  });
});

// mkdirSync() of Node.js with `recursive` never returns for this path.
it.skipIf(process.platform !== 'linux')('a folder for records that cannot be made is refused', async () => {
  const job = startJob(2, 'hangs.ts', ['60000'], { RINGWISE_FLIGHT_DIR: '/proc/ringwise' });
  expect(await job.exitCode).toBe(1);
  expect(job.out.stderr).toContain('cannot write to the folder /proc/ringwise');
});

/** Expects `count` arrows, each with one start and one end, and both inside a slice of the matching operation. */
function expectArrows(events: readonly TraceEvent[], count: number): void {
  const slices = events.filter(({ ph }) => ph === 'X');
  const ends = (kind: 's' | 'f') => events.filter(({ ph }) => ph === kind).sort((a, b) => a.id! - b.id!);
  const [starts, finishes] = [ends('s'), ends('f')];
  expect(starts).toHaveLength(count);
  expect(finishes.map(({ id }) => id)).toEqual(starts.map(({ id }) => id));
  expect(new Set(starts.map(({ id }) => id)).size).toBe(count);
  for (const end of [...starts, ...finishes]) {
    const around = slices.filter(
      ({ pid, tid, ts, dur }) =>
        pid === end.pid && tid === end.tid && ts! - 0.001 <= end.ts! && end.ts! <= ts! + dur! + 0.001,
    );
    expect(around.map(({ name }) => name.replace('recv', 'send'))).toContainEqual(
      expect.stringContaining(end.name),
    );
  }
}

it('explains itself, and what is wrong', () => {
  const flight = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [command, 'flight', ...args], {
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  expect(flight('--help')).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^ringwise flight path/),
    stderr: '',
  });
  expect(flight(folder)).toEqual({
    status: 2,
    stdout: '',
    stderr: `ringwise flight: no flight records in ${folder}. See ringwise flight --help.\n`,
  });
});
