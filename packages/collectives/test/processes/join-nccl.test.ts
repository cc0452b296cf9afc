// Two processes that share only an NCCL communicator, and the store key under which PyTorch keeps the id of its
// communicator.
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { MemoryStore, serveStore, TcpStore } from '@ringwise/store';
import { isTestGpu, startRanks, values, withRanks } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/backends/native.ts';
import { joinNccl } from '../../src/index.ts';
import { useControl } from '../support/control.ts';
import { hasDevice } from '../support/device-twin.ts';

const module = new URL('../support/join-nccl-ranks.ts', import.meta.url);
const missing = hasDevice ? (isTestGpu ? loadNative().nccl.about().reason : '') : 'no device has been built';
/** The key of PyTorch's default group, if that was made with a store. */
const key = '0//cuda//0';

describe.skipIf(missing)(`joinNccl${missing && ` (skipped: ${missing})`}`, () => {
  const control = useControl();

  it('has the collectives that are one call of NCCL, on devices', async () => {
    const ranks = await withRanks(2, module, 'together', { args: [control.port, key] });
    for (const [rank, one] of values<{ refused: string[] }>(ranks).entries()) {
      expect(one).toMatchObject({
        found: [[3, 30], [6], [0, 1], [rank === 0 ? 1 : 3], [0, 0, 1], [0, 1, 1]],
        reduced: rank === 0 ? [1.5] : null,
        registered: 0,
      });
      expect(one.refused[0]).toMatch(/the joined nccl backend cannot reach cpu:0 memory; expected cuda/);
      expect(one.refused[1]).toMatch(/the joined nccl backend does not have it.* It has: allReduce, reduce,/);
      expect(one.refused[2]).toMatch(/split/);
      expect(one.refused[3]).toMatch(/'bxor' is not defined for bool.*: min, max, band, bor/);
    }
  });

  it('fails with the error of NCCL when the other rank is gone, and names no rank', async () => {
    const started = await startRanks(2, module, 'alone', { args: [control.port, key] });
    const [survivor] = await started.results;
    expect(survivor!.value).toEqual({ code: 'ERR_COLL_SYSTEM', what: expect.stringMatching(/NCCL|nccl/) });
  });

  it('says so when no rank brings the id', async () => {
    const [told] = values(await withRanks(1, module, 'withoutId', { args: [control.port, key] }));
    expect(told).toEqual({
      code: 'ERR_COLL_INIT',
      message: expect.stringMatching(/^joinNccl: the store failed \(.*\(group "nccl", rank 1 of 2\)/),
    });
  });

  it('says how many bytes the key has if they are no unique id', async () => {
    const [message] = values<string>(await withRanks(1, module, 'otherBytes', { args: [control.port, key] }));
    expect(message).toMatch(/'0\/\/cuda\/\/0' has 9 bytes; a unique id of NCCL has 128/);
  });
});

it('expects a rank below the size', async () => {
  const store = new MemoryStore();
  await expect(joinNccl({ store, key, rank: 2, size: 2 })).rejects.toThrow(
    /^joinNccl: rank and size do not fit \(from options\); expected 0 <= rank < size, got rank 2/,
  );
});

it('names the first option that is missing', async () => {
  const missing: readonly [options: object | undefined, sentence: RegExp][] = [
    [undefined, /^joinNccl: store is not usable; expected a Store/],
    [{ store: new MemoryStore(), key }, /^joinNccl: rank and size do not fit .*, got rank none, size none/],
  ];
  for (const [options, message] of missing)
    await expect(joinNccl(options as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_COLL_/),
      message: expect.stringMatching(message),
    });
});

const candidates = [process.env.RINGWISE_TEST_PYTHON ?? '', '/usr/bin/python3', 'python3'];
const hasTorch = 'import torch; assert tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)';
const python = candidates.find((name) => name && spawnSync(name, ['-c', hasTorch]).status === 0) ?? '';
it.skipIf(!python).each([
  ['env', 'default_pg/0//cuda//0'],
  ['store', key],
])('torch puts the id of its default group there (%s: %s)', async (how, at) => {
  const server = await serveStore();
  const store = await TcpStore.connect({ ...server, timeoutMs: 90_000 });
  const script = fileURLToPath(new URL('../fixtures/torch_nccl_key.py', import.meta.url));
  await promisify(execFile)(python, [script, server.host, String(server.port), how]);
  expect(await store.check([at])).toBe(true);
  expect(Buffer.from(await store.get(at)).toString()).toBe('torch was here');
  await store.close();
  await server.close();
});
