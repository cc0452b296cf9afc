// Tests spawn() and startProcesses() with threads as ranks.

import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LaunchError, spawn, startProcesses } from '../../../src/index.ts';
import { finished, ringwise, script, until } from '../../support/command.ts';

const worker = (source: string, name = 'worker.mjs') => pathToFileURL(script(name, source));

async function failure(run: Promise<unknown>): Promise<LaunchError> {
  const error = await run.then(
    () => new Error('resolved'),
    (reason: unknown) => reason,
  );
  if (!LaunchError.isInstance(error)) throw error;
  return error;
}

const endless = `setInterval(() => {}, 1000); await new Promise(() => {});`;

describe('threads as ranks', () => {
  it('have variables of their own, and return by rank, whatever is still open', async () => {
    const url = worker(
      `export default (rank, data, shared) => {
         setInterval(() => {}, 1000);
         data[0] += rank;
         Atomics.add(shared, 0, 1 + rank);
         return { data, env: [process.env.RANK, process.env.WORLD_SIZE, process.env.COLOUR], pid: process.pid };
       };`,
    );
    const shared = new Int32Array(new SharedArrayBuffer(4));
    const args = [new Float32Array([1, 2]), shared];
    const results = await spawn(url, { nprocs: 2, args, env: { COLOUR: 'red' }, threads: true });
    const { pid } = process;
    expect(results).toEqual([
      { data: new Float32Array([1, 2]), env: ['0', '2', 'red'], pid },
      { data: new Float32Array([2, 2]), env: ['1', '2', 'red'], pid },
    ]);
    expect(shared[0]).toBe(3);
    expect(process.env.RANK).toBeUndefined();
  });

  it('may be TypeScript, and meet in the store of the job', async () => {
    const url = worker(
      `import { TcpStore } from '${import.meta.resolve('@ringwise/store')}';
       export async function count(rank: number): Promise<number> {
         const { MASTER_ADDR: host, MASTER_PORT, RINGWISE_SECRET: secret } = process.env as Record<string, string>;
         const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), secret });
         await store.set('rank ' + rank, '');
         await store.wait(['rank 0', 'rank 1']);
         return rank;
       }`,
      'worker.ts',
    );
    expect(await spawn<number>(url, { nprocs: 2, exportName: 'count', threads: true })).toEqual([0, 1]);
  });

  it('fail with their own error and stack, and the others are stopped even in a loop without end', async () => {
    const url = worker(
      `export default (rank) => {
         if (rank === 1) throw Object.assign(new RangeError('token 50304'), { code: 'ERR_X', cause: new TypeError('inner') });
         for (;;);
       };`,
    );
    const error = await failure(spawn(url, { nprocs: 2, threads: true }));
    expect(error).toMatchObject({ code: 'ERR_LAUNCH_RANK_FAILED', rank: 1, exitCode: 1, signal: null });
    expect(error.message).toMatch(
      /^spawn: rank 1 of 2 failed \(exit code 1\) after .* s; rank 0 was stopped\./,
    );
    expect(error.cause).toMatchObject({ name: 'RangeError', message: 'token 50304', code: 'ERR_X' });
    expect((error.cause as Error).stack).toContain('worker.mjs:2');
    expect((error.cause as Error).cause).toMatchObject({ name: 'TypeError', message: 'inner' });
  });

  it('fail by an uncaught error, an exit code, a missing function, and a result that cannot be cloned', async () => {
    const uncaught = worker(
      `export default async () => { setTimeout(() => { throw new Error('late'); }, 10); ${endless} };`,
      'uncaught.mjs',
    );
    expect((await failure(spawn(uncaught, { nprocs: 2, threads: true }))).cause).toMatchObject({
      message: 'late',
    });
    const exits = worker(
      `export default async (rank) => { if (rank) process.exit(7); ${endless} };`,
      'e.mjs',
    );
    expect(await failure(spawn(exits, { nprocs: 2, threads: true }))).toMatchObject({ rank: 1, exitCode: 7 });
    const missing = worker(`export const train = 1;`, 'm.mjs');
    expect((await failure(spawn(missing, { nprocs: 1, threads: true }))).cause).toMatchObject({
      message: expect.stringContaining(`has no function named 'default'; it exports train.`),
    });
    const uncloneable = worker(`export default () => () => 1;`, 'u.mjs');
    expect((await failure(spawn(uncloneable, { nprocs: 1, threads: true }))).cause).toMatchObject({
      message: expect.stringContaining(
        'spawn: what the function returned cannot be sent to the caller: () => 1 could not',
      ),
    });
  });

  it('are not blamed for an error that they survived long before', async () => {
    // Rank 0 survives an error; its clock makes that 10 s ago. Then rank 1 fails by itself.
    const url = worker(
      `export default async (rank, survived) => {
         if (rank === 0) {
           const { bigint } = process.hrtime;
           process.hrtime.bigint = () => bigint() - 10_000_000_000n;
           process.on('uncaughtException', () => Atomics.store(survived, 0, 1));
           setTimeout(() => { throw new RangeError('survived'); });
         } else setInterval(() => { if (Atomics.load(survived, 0)) throw new TypeError('own'); }, 5);
         ${endless}
       };`,
    );
    const args = [new Int32Array(new SharedArrayBuffer(4))];
    const error = await failure(spawn(url, { nprocs: 2, args, threads: true }));
    expect(error).toMatchObject({ rank: 1, cause: { message: 'own' } });
  });

  it('are stopped when their time is over', async () => {
    const url = worker(`export default async () => { ${endless} };`);
    const error = await failure(spawn(url, { nprocs: 2, timeoutMs: 500, threads: true }));
    expect(error).toMatchObject({ code: 'ERR_LAUNCH_TIMEOUT', rank: null });
  });

  it('refuse arguments that cannot be cloned', async () => {
    const url = worker(`export default () => 1;`);
    const error = await failure(spawn(url, { nprocs: 2, args: [() => 1], threads: true }));
    expect(error.code).toBe('ERR_LAUNCH_ARGUMENT');
  });

  it('finish printing, and let the process end', async () => {
    const file = script(
      'print.mjs',
      `import { isMainThread } from 'node:worker_threads';
       import { spawn } from '${new URL('../../../dist/index.js', import.meta.url)}';
       export default () => { for (let i = 0; i < 20; i++) console.log('x'.repeat(99_999)); };
       if (isMainThread) await spawn(new URL(import.meta.url), { nprocs: 1, threads: true });`,
    );
    const { stdout, exitCode } = await finished(['run', file]);
    expect(exitCode).toBe(0);
    expect(stdout.length).toBe(20 * (100_000 + '[0] '.length));
  });
});

describe('startProcesses', () => {
  it.each([false, true])('joins within a time, and stops what goes on (threads: %s)', async (threads) => {
    const url = worker(
      `import { writeFileSync } from 'node:fs';
       export default async (rank, file) => { writeFileSync(file + rank, ''); ${endless} };`,
    );
    const file = script('started', '');
    const ranks = await startProcesses(url, { nprocs: 2, args: [file], threads });
    expect(ranks.pids.every((pid) => (pid === process.pid) === threads)).toBe(true);
    expect(await ranks.join(10)).toBe(null);
    const { existsSync } = await import('node:fs');
    await until('both run', () => existsSync(`${file}0`) && existsSync(`${file}1`));
    ranks.stop();
    // No rank failed, and none returned a value.
    expect(await ranks.join()).toEqual([undefined, undefined]);
  });

  it('returns what the ranks returned, as often as it is asked', async () => {
    const url = worker(`export default (rank) => 10 * rank;`);
    const ranks = await startProcesses<number>(url, { nprocs: 2 });
    expect(await ranks.join(120_000)).toEqual([0, 10]);
    expect(await ranks.join()).toEqual([0, 10]);
  });

  it('lets the process end when ranks are stopped that have ended', async () => {
    const file = script(
      'stops.mjs',
      `import { isMainThread } from 'node:worker_threads';
       import { startProcesses } from '${new URL('../../../dist/index.js', import.meta.url)}';
       export default () => {};
       if (isMainThread) {
         const ranks = await startProcesses(new URL(import.meta.url), { nprocs: 1, threads: true });
         await ranks.join();
         ranks.stop();
       }`,
    );
    const { child } = ringwise(['run', file]);
    await until('the command has ended', () => child.exitCode !== null);
    expect(child.exitCode).toBe(0);
  });
});
