import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LaunchError, type SpawnOptions, spawn, startProcesses } from '../../../src/index.ts';
import { finished, isGone, script } from '../../support/command.ts';

const worker = (source: string, name = 'worker.mjs') => pathToFileURL(script(name, source));

async function failure(run: Promise<unknown>): Promise<LaunchError> {
  const error = await run.then(
    () => new Error('resolved'),
    (reason: unknown) => reason,
  );
  if (!LaunchError.isInstance(error)) throw error;
  return error;
}

describe('spawn', () => {
  it('calls the function with its rank and the arguments, and returns the results by rank', async () => {
    const url = worker(
      `export default async (rank, data, more) => {
         data[0] += rank;
         return { data, more, env: [process.env.RANK, process.env.WORLD_SIZE, process.env.COLOUR] };
       };`,
    );
    const args = [new Float32Array([1, 2]), new Map([['a', 1n]])];
    const results = await spawn(url, { nprocs: 2, args, env: { COLOUR: 'red' } });
    expect(results).toEqual([
      { data: new Float32Array([1, 2]), more: new Map([['a', 1n]]), env: ['0', '2', 'red'] },
      { data: new Float32Array([2, 2]), more: new Map([['a', 1n]]), env: ['1', '2', 'red'] },
    ]);
  });

  it.each([false, true])('is refused while a rank loads its module, threads: %s', async (threads) => {
    const url = worker(
      `import { spawn } from '${new URL('../../../dist/index.js', import.meta.url)}';
       export default (rank) => rank;
       await spawn(new URL(import.meta.url), { nprocs: 2 });`,
    );
    const { cause } = await failure(spawn(url, { nprocs: 2, threads }));
    expect((cause as Error).message).toContain('Put the call into if (process.env.RANK === undefined)');
  });

  it('gives the ranks a store, calls exports by name, and takes TypeScript', async () => {
    const url = worker(
      `import { TcpStore } from '${import.meta.resolve('@ringwise/store')}';
       export async function count(rank: number): Promise<number> {
         const { MASTER_ADDR: host, MASTER_PORT, RINGWISE_SECRET: secret } = process.env as Record<string, string>;
         const store = await TcpStore.connect({ host, port: Number(MASTER_PORT), secret });
         await store.add('ranks', 1);
         await store.set('rank ' + rank, '');
         await store.wait(['rank 0', 'rank 1']);
         return await store.add('ranks', 0);
       }`,
      'worker.ts',
    );
    expect(await spawn<number>(url, { nprocs: 2, exportName: 'count' })).toEqual([2, 2]);
  });

  it('ends a rank whose function has returned, whatever is still open there', async () => {
    const url = worker(
      `export default (rank) => { setInterval(() => {}, 1000); return new Uint8Array(5e6).fill(rank); };`,
    );
    const results = await spawn<Uint8Array>(url, { nprocs: 2 });
    expect(results.map((bytes) => [bytes.length, bytes.at(-1)])).toEqual([
      [5e6, 0],
      [5e6, 1],
    ]);
  });

  it.each([false, true])('ignores messages that the function itself sends, threads: %s', async (threads) => {
    const url = worker(
      `import { parentPort } from 'node:worker_threads';
       export default (rank) => {
         const send = (message) => (parentPort ? parentPort.postMessage(message) : process.send(message));
         for (const message of [null, 'progress', 7, { result: 'mine', lastWords: null }]) send(message);
         if (rank === 1) process.exit(0);
         return 'returned';
       };`,
    );
    expect(await spawn(url, { nprocs: 2, threads })).toStrictEqual(['returned', undefined]);
  });

  it('rejects with the error of the rank that threw, and stops the others', async () => {
    const url = worker(
      `export default async (rank) => {
         if (rank === 1) throw Object.assign(new RangeError('token 50304'), { code: 'ERR_X', cause: new TypeError('inner') });
         await new Promise((resolve) => setTimeout(resolve, 60_000));
       };`,
    );
    const error = await failure(spawn(url, { nprocs: 2 }));
    expect(error).toMatchObject({ code: 'ERR_LAUNCH_RANK_FAILED', rank: 1, exitCode: 1, signal: null });
    expect(error.message).toMatch(
      /^spawn: rank 1 of 2 failed \(exit code 1\) after .* s; rank 0 was stopped\.\n/,
    );
    expect(error.cause).toMatchObject({ name: 'RangeError', message: 'token 50304', code: 'ERR_X' });
    expect((error.cause as Error).stack).toContain('worker.mjs:2');
    expect((error.cause as Error).cause).toMatchObject({ name: 'TypeError', message: 'inner' });
  });

  it('names the signal when a rank was killed', async () => {
    const url = worker(`export default () => process.kill(process.pid, 'SIGKILL');`);
    const error = await failure(spawn(url, { nprocs: 1 }));
    expect(error).toMatchObject({
      code: 'ERR_LAUNCH_RANK_FAILED',
      rank: 0,
      exitCode: null,
      signal: 'SIGKILL',
    });
    expect(error).not.toHaveProperty('cause');
  });

  it('leaves the printing to its caller, works inside a rank, and lets the process end', async () => {
    const file = script(
      'nested.mjs',
      `import { spawn } from '${new URL('../../../dist/index.js', import.meta.url)}';
       export const inner = (rank) => { if (rank === 1) throw new Error('inner failed'); return process.env.WORLD_SIZE; };
       if (process.env.OUTER === undefined) {
         const options = { exportName: 'inner', env: { OUTER: process.env.RANK } };
         console.log(await spawn(new URL(import.meta.url), { ...options, nprocs: 1 }));
         await spawn(new URL(import.meta.url), { ...options, nprocs: 2 }).catch((error) => console.log(error.cause.message));
       }`,
    );
    const { exitCode, stdout, stderr } = await finished(['run', file]);
    expect(stdout).toBe("[0] [ '1' ]\n[0] inner failed\n");
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
  });

  it('lets a rank finish printing before it ends', async () => {
    const file = script(
      'print.mjs',
      `import { spawn } from '${new URL('../../../dist/index.js', import.meta.url)}';
       export default () => { for (let i = 0; i < 20; i++) console.log('x'.repeat(99_999)); };
       if (process.env.INNER === undefined) {
         await spawn(new URL(import.meta.url), { nprocs: 1, env: { INNER: '1' } });
       }`,
    );
    const { stdout } = await finished(['run', file]);
    expect(stdout.length).toBe(20 * (100_000 + '[0] '.length));
  });

  it.skipIf(!existsSync('/dev/full'))(
    'does not fail for ranks that print nothing, where nothing can be stored',
    () => {
      const file = script(
        'quiet.mjs',
        `import { spawn } from '${new URL('../../../dist/index.js', import.meta.url)}';
       export default () => 7;
       if (process.env.RANK === undefined) console.error(await spawn(new URL(import.meta.url), { nprocs: 1 }));`,
      );
      const words = ['-c', 'exec "$0" "$@" > /dev/full', process.execPath, file];
      const { status, stderr } = spawnSync('/bin/sh', words, { encoding: 'utf8' });
      expect(stderr).toBe('[ 7 ]\n');
      expect(status).toBe(0);
    },
  );

  it.each([false, true])(
    'calls the default export that a compiler has put into CommonJS (threads: %s)',
    async (threads) => {
      const url = worker(
        `Object.defineProperty(exports, '__esModule', { value: true });
       exports.default = (rank) => 2 * rank;`,
        'compiled.cjs',
      );
      expect(await spawn<number>(url, { nprocs: 2, threads })).toEqual([0, 2]);
    },
  );

  it('says which exports there are when the function is missing', async () => {
    const url = worker(`export const train = 1;`);
    const { cause } = await failure(spawn(url, { nprocs: 1 }));
    expect((cause as Error).message).toContain(`has no function named 'default'; it exports train.`);
  });

  it('fails when a result cannot be cloned', async () => {
    const url = worker(`export default () => () => 1;`);
    const { cause } = await failure(spawn(url, { nprocs: 1 }));
    expect((cause as Error).message).toMatch(
      /^spawn: what the function returned cannot be sent to the caller: .* could not be cloned\. Return values/,
    );
  });

  it('fails when the function has closed the channel for its result', async () => {
    const url = worker(`export default () => { process.disconnect(); return 1; };`);
    const { cause } = await failure(spawn(url, { nprocs: 1 }));
    expect((cause as Error).message).toContain('Channel closed. Do not call process.disconnect() in a rank.');
  });

  it('stops the ranks when their time is over', async () => {
    const url = worker(
      `import { writeFileSync } from 'node:fs';
       export default (rank, file) => { writeFileSync(file, String(process.pid)); setInterval(() => {}, 1000); return new Promise(() => {}); };`,
    );
    const pidFile = script('pid', '');
    const error = await failure(spawn(url, { nprocs: 1, args: [pidFile], timeoutMs: 1500 }));
    expect(error).toMatchObject({ code: 'ERR_LAUNCH_TIMEOUT', rank: null });
    expect(isGone(Number(readFileSync(pidFile, 'utf8')))).toBe(true);
  });

  it('names a rank that cannot be started', async () => {
    const url = worker(`export default () => 1;`);
    const error = await failure(spawn(url, { nprocs: 1, env: { BIG: 'x'.repeat(4 << 20) } }));
    expect(error).toMatchObject({ code: 'ERR_LAUNCH_RANK_FAILED', rank: 0, exitCode: null, signal: null });
    expect(error.message).toContain('rank 0 of 1 failed (could not be started)');
    expect(error.cause).toMatchObject({ code: 'E2BIG' });
  });

  it('refuses arguments that cannot be cloned', async () => {
    const url = worker(`export default () => 1;`);
    const error = await failure(spawn(url, { nprocs: 2, args: [() => 1] }));
    expect(error.code).toBe('ERR_LAUNCH_ARGUMENT');
    expect(error.message).toContain('args expects values that structured clone can copy');
  });

  it.each([
    [{ nprocs: 0 }, 'nprocs expects a whole number from 1 to 65536, got 0'],
    [{ nprocs: 1.5 }, 'nprocs expects a whole number'],
    [{ nprocs: '2' }, "nprocs expects a whole number from 1 to 65536, got '2'"],
    [{ nprocs: 1, timeoutMs: -1 }, 'timeoutMs expects a whole number'],
    [{ nprocs: 1, timeoutMs: '60000' }, "timeoutMs expects a whole number from 1 to 2147483647, got '60000'"],
    [{ nprocs: 1, args: 'ab' }, "args expects an array, one argument each, got 'ab'"],
    [{ nprocs: 1, env: { A: 5 } }, 'env.A expects a string, got 5'],
    [{ nprocs: 1, env: 'A=5' }, "env expects an object of strings, got 'A=5'"],
    [{ nprocs: 1, threads: 'false' }, "threads expects true or false, got 'false'"],
    [{ nprocs: 1, exportName: 5 }, 'exportName expects the name of an export, got 5'],
    [{ nproc: 2 }, "unknown option 'nproc'; expected 'nprocs'"],
    [{ nprocs: 2, world_size: 2 }, "unknown option 'world_size'; expected 'nprocs'"],
    [{ nprocs: 2, export_name: 'a' }, "unknown option 'export_name'; expected 'exportName'"],
    [{ nprocs: 2, timeoutMS: 5 }, "unknown option 'timeoutMS'; expected 'timeoutMs'"],
    [
      { nprocs: 2, daemon: true },
      "unknown option 'daemon'; expected nprocs, args, env, exportName, threads, timeoutMs",
    ],
    [2, 'options expects an object such as { nprocs: 2 }, got 2'],
    [undefined, 'options expects an object such as { nprocs: 2 }, got undefined'],
  ])('refuses %j', async (options, sentence) => {
    const error = await failure(spawn(new URL('file:///worker.mjs'), options as unknown as SpawnOptions));
    expect(error.code).toBe('ERR_LAUNCH_ARGUMENT');
    expect(error.message).toContain(`spawn: ${sentence}`);
  });

  it('has a time limit, which startProcesses() has not: its join() does', async () => {
    const options = { nprocs: 1, timeoutMs: 5 };
    const error = await failure(startProcesses(new URL('file:///worker.mjs'), options));
    expect(error.message).toBe(
      "startProcesses: unknown option 'timeoutMs'; expected nprocs, args, env, exportName, threads.",
    );
    const ranks = await startProcesses(worker(`export default () => 1;`), { nprocs: 1 });
    await expect(ranks.join(Number.NaN)).rejects.toThrow('join: timeoutMs expects a whole number from 0');
    expect(() => ranks.stop('SIGFOO' as NodeJS.Signals)).toThrow('stop: signal expects the name of a signal');
    expect(await ranks.join()).toEqual([1]);
  });

  it('refuses what is no file', async () => {
    expect((await failure(spawn('./worker.mjs', { nprocs: 1 }))).message).toContain(
      'module expects a file URL',
    );
    const absent = await failure(spawn(new URL('./absent.mjs', import.meta.url), { nprocs: 1 }));
    expect(absent.code).toBe('ERR_LAUNCH_SCRIPT');
  });
});
