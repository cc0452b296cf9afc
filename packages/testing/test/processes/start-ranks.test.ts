import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { type RunningRanks, startRanks, values, withDeadlines, withRanks } from '../../src/index.ts';

const ranks = new URL('../fixtures/ranks.ts', import.meta.url);
const parents: ChildProcess[] = [];
const running: RunningRanks[] = [];
afterEach(async () => {
  for (const parent of parents.splice(0)) parent.kill('SIGKILL');
  for (const { pids, kill } of running.splice(0)) for (const rank of pids.keys()) kill(rank);
});

/** Tells whether a process exists. A zombie, which has ended, does not count. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    if (process.platform !== 'linux') return true;
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

it('runs ranks in processes of their own that meet at a store', async () => {
  const options = { args: [{ letters: 'hi' }, Uint8Array.of(1, 2)] };
  for (const secret of [undefined, 'known', false] as const) {
    const results = await withRanks(2, ranks, 'meet', {
      ...options,
      ...(secret !== undefined && { secret }),
    });
    const pids = results.map((result) => result.pid);
    expect(new Set([...pids, process.pid]).size).toBe(3);
    expect(values(results)).toEqual(
      [0, 1].map((rank) => ({
        pids,
        floats: Float32Array.of(rank, 0.5),
        large: 2n ** 60n + BigInt(rank),
        bytes: Uint8Array.of(1, 2),
      })),
    );
    expect(results.map((result) => result.stdout)).toEqual(['rank 0 says hi\n', 'rank 1 says hi\n']);
    expect(results.map((result) => result.stderr)).toEqual(['', '']);
  }
});

it('gives ranks the environment of a launched job and nothing of the test runner', async () => {
  const results = await withRanks(2, ranks, 'environment', { env: { EXTRA: 'yes' }, secret: 'known' });
  const [, env] = values<NodeJS.ProcessEnv>(results);
  expect(env).toMatchObject({
    RANK: '1',
    LOCAL_RANK: '1',
    WORLD_SIZE: '2',
    LOCAL_WORLD_SIZE: '2',
    GROUP_RANK: '0',
    MASTER_ADDR: '127.0.0.1',
    RINGWISE_SECRET: 'known',
    RINGWISE_RUN_ID: expect.stringMatching(/^[0-9a-f]{16}$/),
    EXTRA: 'yes',
    PATH: process.env.PATH,
  });
  expect(Number(env!.MASTER_PORT)).toBeGreaterThan(0);
  expect(Object.keys(env!).filter((name) => /^(VITE|NODE_OPTIONS|NODE_ENV|TEST$)/.test(name))).toEqual([]);
});

it('passes flags to node', async () => {
  const results = await withRanks(1, ranks, 'execArgv', { execArgv: ['--expose-gc'] });
  expect(values(results)).toEqual([['function', true]]);
});

it('brings back what a rank threw, with its fields and cause', async () => {
  const results = await withRanks(2, ranks, 'fail');
  expect(results[0]).toMatchObject({ rank: 0, status: 'ok', value: 'fine', exitCode: 0, signal: null });
  expect(results[1]).toMatchObject({
    rank: 1,
    status: 'error',
    error: {
      name: 'FancyError',
      message: 'it broke',
      code: 'ERR_FANCY',
      peers: [1, 2],
      cause: { name: 'RangeError', message: 'too far' },
    },
    exitCode: 1,
  });
  expect(results[1]!.error!.stack).toContain('ranks.ts');
  expect(() => values(results)).toThrow(
    /^1 of 2 ranks failed\.\nrank 1 \(pid \d+\): error, exit code 1\nFancyError: it broke\n[\s\S]*about to fail$/,
  );
});

it('tells a rank that exits early from one that returns', async () => {
  const results = await withRanks(2, ranks, 'exit');
  expect(results[0]).toMatchObject({ status: 'ok', value: 0 });
  expect(results[1]).toMatchObject({ status: 'exited', exitCode: 3, signal: null });
  expect(results[1]).not.toHaveProperty('value');
});

it('does not call a rank ok that crashes after it has returned', async () => {
  const [result] = await withRanks(1, ranks, 'crashAfterwards');
  expect(result).toMatchObject({ status: 'exited', value: 'returned', signal: 'SIGKILL' });
});

it('kills what still runs at the time limit', async () => {
  const results = await withRanks(2, ranks, 'hang', { timeoutMs: 3_000 });
  expect(results[1]).toMatchObject({ status: 'timed-out', signal: 'SIGKILL', exitCode: null });
  expect(isAlive(results[1]!.pid)).toBe(false);
});

it('shows a rank that something keeps alive after it has returned', async () => {
  // The process has to start within the time limit.
  await withDeadlines([8_000, 60_000], async (timeoutMs) => {
    const [result] = await withRanks(1, ranks, 'leak', { timeoutMs });
    expect(result).toMatchObject({ status: 'timed-out', value: 'returned' });
  });
});

it('lets the test kill one rank, and tells when each ended', async () => {
  const job = await startRanks(2, ranks, 'untilFile', { args: ['/nonexistent/file'] });
  running.push(job);
  const startedAtMs = performance.now();
  job.kill(1);
  job.kill(0, 'SIGTERM');
  const results = await job.results;
  expect(results.map((result) => [result.pid, result.status, result.signal])).toEqual([
    [job.pids[0], 'exited', 'SIGTERM'],
    [job.pids[1], 'exited', 'SIGKILL'],
  ]);
  for (const { endedAtMs } of results) {
    expect(endedAtMs).toBeGreaterThanOrEqual(startedAtMs);
    expect(endedAtMs).toBeLessThanOrEqual(performance.now());
  }
});

it('ends what a rank has left running', async () => {
  const [pid] = values<number>(await withRanks(1, ranks, 'abandon'));
  await expect.poll(() => isAlive(pid!)).toBe(false);
});

it('reports a missing export and a value that cannot be sent', async () => {
  const [missing] = await withRanks(1, ranks, 'nothing');
  expect(missing!.error!.message).toMatch(/ranks\.ts exports no function "nothing"$/);
  const [bad] = await withRanks(1, ranks, 'uncloneable');
  expect(bad!.error!.name).toBe('DataCloneError');
});

it('ends ranks when the parent is killed', async () => {
  const parent = fork(new URL('../fixtures/parent.mjs', import.meta.url), [ranks.href]);
  parents.push(parent);
  const [pids] = (await once(parent, 'message')) as [number[]];
  expect(pids.map(isAlive)).toEqual([true, true]);
  parent.kill('SIGKILL');
  await expect.poll(() => pids.map(isAlive)).toEqual([false, false]);
});
