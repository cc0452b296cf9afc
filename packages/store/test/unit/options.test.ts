// Every store refuses unknown options and values of wrong types.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  FileStore,
  MemoryStore,
  PrefixStore,
  type Store,
  serveStore,
  serveStoreInWorker,
  TcpStore,
} from '../../src/index.ts';

const refused = (message: string) => ({ code: 'ERR_STORE_ARGUMENT', message });
const address = { host: '127.0.0.1', port: 1 };

/** Removes the type, as in a program without types. */
// biome-ignore lint/suspicious/noExplicitAny: it is wrong on purpose
const loose = (value: unknown): any => value;

it.each([
  [{ ...address, timeout: 5 }, "unknown option 'timeout'; expected 'timeoutMs'"],
  [{ port: 1, host_name: 'h' }, "unknown option 'host_name'; expected 'host'"],
  [{ ...address, timeout_ms: 5 }, "unknown option 'timeout_ms'; expected 'timeoutMs'"],
  [{ ...address, secert: 's' }, "unknown option 'secert'; did you mean 'secret'"],
  [
    { ...address, is_master: true },
    "unknown option 'is_master'; expected host, port, timeoutMs, secret, signal",
  ],
  ['127.0.0.1:1', 'options are a string; expected an object'],
  [undefined, 'options are null; expected an object'],
  [{ ...address, port: '1' }, 'expected port to be 1 to 65535, got "1"'],
  [{ ...address, timeoutMs: '60000' }, 'expected timeoutMs to be a number of milliseconds >= 0, got "60000"'],
  [{ ...address, timeoutMs: Number.NaN }, 'expected timeoutMs to be a number of milliseconds >= 0, got NaN'],
])('TcpStore.connect(%j) says: %s', async (options, problem) => {
  await expect(TcpStore.connect(loose(options))).rejects.toMatchObject(refused(`connect: ${problem}.`));
});

it('a server may be spread into the options of its clients', async () => {
  const server = await serveStore();
  const store = await TcpStore.connect({ ...server, timeoutMs: 20_000 });
  await store.close();
  await server.close();
});

it.each([
  [{ hots: '127.0.0.1' }, "unknown option 'hots'; did you mean 'host'"],
  [{ port: '29500' }, 'expected port to be 0 to 65535, got "29500"'],
  [{ port: -1 }, 'expected port to be 0 to 65535, got -1'],
  [{ host: 5 }, 'expected host to be a name or address, got 5'],
  [29500, 'options are a number; expected an object'],
  [null, 'options are null; expected an object'],
])('serveStore(%j) says: %s', async (options, problem) => {
  await expect(serveStore(loose(options))).rejects.toMatchObject(refused(`serveStore: ${problem}.`));
});

it('serveStoreInWorker() has no callback, which cannot reach another thread', async () => {
  const options = loose({ onPlainClient: () => {} });
  await expect(serveStoreInWorker(options)).rejects.toMatchObject({
    code: 'ERR_STORE_ARGUMENT',
    message: expect.stringContaining("unknown option 'onPlainClient'; expected host, port, secret"),
  });
});

it('FileStore.open() refuses them before it writes anything', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ringwise-store-'));
  for (const [options, problem] of [
    [{ run_id: 'x' }, "unknown option 'run_id'; expected 'runId'"],
    [{ runId: 5 }, 'expected runId to be a string, got 5'],
    [{ timeoutMs: '5' }, 'expected timeoutMs to be a number of milliseconds >= 0, got "5"'],
  ]) {
    await expect(FileStore.open(directory, loose(options))).rejects.toMatchObject(
      refused(`open: ${problem}.`),
    );
  }
  expect(readdirSync(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
});

it('MemoryStore refuses them', () => {
  expect(() => new MemoryStore(loose({ timeout: 5 }))).toThrow(
    "MemoryStore: unknown option 'timeout'; expected 'timeoutMs'.",
  );
});

it.each<[string, () => Store]>([
  ['a store', () => new MemoryStore()],
  ['a view of one', () => new PrefixStore('p', new MemoryStore())],
])('waiting calls of %s refuse them instead of waiting for the default time', async (_, make) => {
  const store = make();
  await expect(store.get('k', loose(500))).rejects.toMatchObject(
    refused('get: options are a number; expected an object.'),
  );
  await expect(store.wait(['k'], loose({ timeout: 5 }))).rejects.toMatchObject(
    refused("wait: unknown option 'timeout'; expected 'timeoutMs'."),
  );
  await expect(store.multiGet(['k'], loose({ timeoutMs: '5' }))).rejects.toMatchObject(
    refused('multiGet: expected timeoutMs to be a number of milliseconds >= 0, got "5".'),
  );
});

it.each([
  [
    () => new (loose(TcpStore))('127.0.0.1', 1),
    'new TcpStore(): expected await TcpStore.connect({ host, port }), which reaches the store first.',
  ],
  [
    () => new (loose(FileStore))('/tmp/store'),
    'new FileStore(): expected await FileStore.open(directory), which reaches the store first.',
  ],
  [
    () => new PrefixStore('p', loose(undefined)),
    'PrefixStore: expected a store behind the prefix, got undefined.',
  ],
])('a store that is made in another way says how it is made (%#)', (make, message) => {
  expect(make).toThrow(expect.objectContaining(refused(message)));
});
