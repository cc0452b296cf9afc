import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileStore } from '../../src/index.ts';
import { storeContract } from '../../src/testing.ts';

const make = async () => {
  const directory = await mkdtemp(join(tmpdir(), 'ringwise-store-'));
  return {
    connect: () => FileStore.open(directory),
    close: () => rm(directory, { recursive: true }),
  };
};

storeContract('FileStore', make, { describe, it });

describe('FileStore', () => {
  let directory: string;
  const children: ChildProcess[] = [];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ringwise-store-'));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  });

  it('keeps several processes on one directory consistent, although one is killed in between', async () => {
    const size = 4;
    const start = (rank: number, ranks: number) => {
      const script = new URL('../fixtures/file-store-rank.mjs', import.meta.url);
      const child = fork(script, [directory, String(rank), String(ranks)], { stdio: 'inherit' });
      children.push(child);
      return child;
    };
    // This process waits for a rank that never comes, and is killed.
    const victim = start(9, 99);
    const own = await FileStore.open(directory, { runId: 'run' });
    await own.wait(['rank9'], { timeoutMs: 120_000 });
    victim.kill('SIGKILL');

    const results = await Promise.all(
      Array.from({ length: size }, async (_, rank) => (await once(start(rank, size), 'message'))[0]),
    );
    const sums = results.flatMap((result) => result.sums).toSorted((a, b) => a - b);
    expect(sums).toEqual(Array.from({ length: size * 30 }, (_, index) => index + 31));
    expect(results.map((result) => result.leader)).toEqual(['9', '9', '9', '9']);
    expect(results.map((result) => result.letters)).toEqual([5, 5, 5, 5]);
    await own.close();
    const left = await readdir(directory);
    expect(left.filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('refuses what another run has left behind', async () => {
    const first = await FileStore.open(directory, { runId: 'monday' });
    await first.close();
    await expect(FileStore.open(directory, { runId: 'tuesday' })).rejects.toMatchObject({
      code: 'ERR_STORE_STALE',
      message: expect.stringMatching(/expected run "tuesday", got "monday" created 20.*Remove the directory/),
    });
    await (await FileStore.open(directory, { runId: 'monday' })).close();
  });

  it('keeps its deadlines and signals while the file system does not answer', async () => {
    const store = await FileStore.open(directory, { timeoutMs: 5_000 });
    // Opening a pipe that no process writes blocks, as a file server that does not answer does.
    const record = join(directory, '000000001');
    execFileSync('mkfifo', [record]);
    const stop = new AbortController();
    const silent = { code: 'ERR_STORE_TIMEOUT', message: expect.stringContaining('the file system did not') };
    const calls = [
      expect(store.get('k')).rejects.toMatchObject({ ...silent, keys: ['k'] }),
      expect(store.wait(['k'], { signal: stop.signal })).rejects.toThrow('stop'),
      expect(store.set('k', 'v')).rejects.toMatchObject(silent),
      expect(store.add('n', 1)).rejects.toMatchObject(silent),
    ];
    stop.abort(new Error('stop'));
    await Promise.all(calls);
    await store.close();
    await (await open(record, 'w')).close();
  });

  it('refuses a directory whose header is of another program', async () => {
    for (const text of ['null', '5', '{"format":"other"}']) {
      await writeFile(join(directory, 'header.json'), text);
      await expect(FileStore.open(directory)).rejects.toMatchObject({
        code: 'ERR_STORE_STALE',
        message: expect.stringMatching(/another header\.json; expected the format "ringwise-store-1", got /),
      });
    }
  });

  it('ends its waits when the directory is removed', async () => {
    const store = await FileStore.open(directory);
    const lost = expect(store.get('never')).rejects.toMatchObject({ code: 'ERR_STORE_LOST' });
    await rm(directory, { recursive: true });
    await lost;
    await expect(store.set('k', 'v')).rejects.toMatchObject({ code: 'ERR_STORE_LOST' });
    await store.close();
  });

  it('says what is wrong with a directory that it cannot use', async () => {
    const file = join(directory, 'file');
    await writeFile(file, '');
    await expect(FileStore.open(file)).rejects.toMatchObject({ code: 'ERR_STORE_FILE' });
    // mkdir() of Node.js with `recursive` never ends for this path.
    if (process.platform === 'linux')
      await expect(FileStore.open('/proc/ringwise')).rejects.toMatchObject({ code: 'ERR_STORE_FILE' });
  });
});
