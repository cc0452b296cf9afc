// Tests our store against PyTorch's TCPStore, as client and as server, with the first of RINGWISE_PYTHON, python3 and
// /usr/bin/python3 that has torch. If none has, the tests are skipped.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { serveStore, TcpStore } from '../../src/index.ts';
import { storeContract } from '../../src/testing.ts';

const script = fileURLToPath(new URL('../fixtures/torch_store.py', import.meta.url));
const candidates = [process.env.RINGWISE_PYTHON ?? '', 'python3', '/usr/bin/python3'];
const python = candidates.find((name) => name && spawnSync(name, ['-c', 'import torch']).status === 0) ?? '';
const version = python && spawnSync(python, [script, 'version'], { encoding: 'utf8' }).stdout.trim();
const isOld = version.startsWith('1.');

const run = async (...parameters: (string | number)[]) => {
  const { stdout } = await promisify(execFile)(python, [script, ...parameters.map(String)]);
  return JSON.parse(stdout);
};

describe.skipIf(!python)(`torch ${version || '(no Python with torch found)'} as a client`, () => {
  it('gets from a ringwise server what it expects of a TCPStore', async () => {
    const server = await serveStore();
    const store = await TcpStore.connect({ ...server, timeoutMs: 90_000 });
    const results = run('client', server.host, server.port);
    await store.set('from node', 'hello');
    await store.wait(['done']);
    const expected = {
      get: 'value',
      add: [5, -2],
      swap: ['next', 'next'],
      delete: [true, false],
      fromNode: 'hello',
    };
    const extended = {
      check: [true, false],
      multiGet: ['1', '22', 'abcd'],
      timeout: expect.stringMatching(/wait timeout after 50ms, keys: \/never/),
      afterTimeout: 'abcd',
    };
    expect(await results).toMatchObject(isOld ? expected : { ...expected, ...extended });
    expect(Buffer.from(await store.get('inner/outer/key')).toString()).toBe('prefixed');
    await store.close();
    await server.close();
  });

  it('runs two gloo ranks that meet on a ringwise server', async () => {
    const server = await serveStore();
    const ranks = await Promise.all([0, 1].map((rank) => run('rank', server.host, server.port, rank)));
    for (const rank of ranks)
      expect(rank).toEqual({ sum: [3, 3, 3, 3], gathered: [{ rank: 0 }, { rank: 1 }] });
    await server.close();
  });
});

const host = '127.0.0.1';
let child: ChildProcess | undefined;
afterAll(() => child?.kill());

/** Starts one more store in one Python process, which serves all tests. */
async function startTorch(kind: 'libuv' | 'legacy'): Promise<number> {
  child ??= spawn(python, [script, 'serve'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const lines = createInterface(child.stdout!);
  child.stdin!.write(`${kind}\n`);
  const [line] = await once(lines, 'line');
  lines.close();
  return Number(line);
}

for (const kind of ['libuv', 'legacy'] as const) {
  const make = async () => {
    const port = await startTorch(kind);
    return { connect: () => TcpStore.connect({ host, port, timeoutMs: 90_000 }), close: async () => {} };
  };
  const name = `TcpStore with the ${kind} server of torch ${version || '(no Python with torch found)'}`;
  storeContract(name, make, { describe: describe.skipIf(!python || isOld), it });
}

it.skipIf(!isOld)('refuses the server of torch 1.13 in a sentence, and leaves it running', async () => {
  const port = await startTorch('legacy');
  for (let attempt = 0; attempt < 2; attempt++) {
    await expect(TcpStore.connect({ host, port, timeoutMs: 90_000 })).rejects.toMatchObject({
      code: 'ERR_STORE_PROTOCOL',
      message: expect.stringContaining('torch 2.4 or newer'),
    });
  }
});
