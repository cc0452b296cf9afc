import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryStore } from '@ringwise/store';
import { describe, expect, it } from 'vitest';
import { planInit } from '../../../src/init/plan.ts';
import type { InitOptions } from '../../../src/options/init-options.ts';

const launched = {
  RANK: '1',
  WORLD_SIZE: '4',
  LOCAL_RANK: '1',
  LOCAL_WORLD_SIZE: '2',
  MASTER_ADDR: 'head',
  MASTER_PORT: '5000',
};
const agent = { ...launched, TORCHELASTIC_RUN_ID: 'job', TORCHELASTIC_USE_AGENT_STORE: 'True' };

const messageOf = (options: InitOptions, env: Record<string, string> = {}): string => {
  try {
    planInit(options, env);
    return 'accepted';
  } catch (error) {
    return (error as Error).message;
  }
};

describe('planInit', () => {
  it('makes a process without a launcher a group of one', () => {
    expect(planInit({}, {})).toEqual({
      name: 'world',
      rank: 0,
      size: 1,
      via: null,
      localRank: null,
      localSize: null,
      backend: 'solo',
      store: { kind: 'nowhere' },
      runKey: 'ringwise/run/0',
      secret: null,
      timeoutMs: 300_000,
    });
  });

  it('refuses the backend of one rank for several, which would train apart without an error', () => {
    const env = { ...launched, RINGWISE_BACKEND: 'solo' };
    const sentence =
      "init: the backend solo is for one rank; expected 'auto', 'host' or another backend for 4 ranks";
    expect(messageOf({}, env)).toContain(sentence);
    expect(messageOf({ backend: 'solo' }, launched)).toContain(sentence);
    expect(planInit({ rank: 0, size: 1 }, env).backend).toBe('solo');
  });

  it('takes everything from the launcher', () => {
    const env = {
      ...launched,
      RINGWISE_SECRET: 's3cret',
      RINGWISE_RUN_ID: 'a',
      TORCHELASTIC_RESTART_COUNT: '3',
    };
    expect(planInit({}, env)).toEqual({
      name: 'world',
      rank: 1,
      size: 4,
      via: 'ringwise',
      localRank: 1,
      localSize: 2,
      backend: 'auto',
      store: { kind: 'tcp', host: 'head', port: 5000, isServed: false, secret: 's3cret' },
      runKey: 'ringwise/a/3',
      secret: 's3cret',
      timeoutMs: 300_000,
    });
  });

  it('takes the backend from options, then RINGWISE_BACKEND', () => {
    const env = { ...launched, RINGWISE_BACKEND: 'mpi' };
    expect(planInit({}, env).backend).toBe('mpi');
    expect(planInit({ backend: 'auto' }, env).backend).toBe('auto');
  });

  it('takes rank and size from options, then the url, then the launcher', () => {
    const url = 'tcp://head:5000?rank=2&size=3';
    const of = ({ rank, size, localRank }: ReturnType<typeof planInit>) => [rank, size, localRank];
    expect(of(planInit({ url, rank: 0, size: 9 }, launched))).toEqual([0, 9, null]);
    expect(of(planInit({ url }, launched))).toEqual([2, 3, null]);
    expect(of(planInit({ url: 'env://' }, launched))).toEqual([1, 4, 1]);
    expect(of(planInit({ url: 'tcp://head:1' }, launched))).toEqual([1, 4, 1]);
  });

  it('reads addresses and directories from the url', () => {
    const placeOf = (url: string) => planInit({ url, rank: 0, size: 2 }, {}).store;
    expect(placeOf('tcp://10.0.0.1:5000')).toMatchObject({ host: '10.0.0.1', port: 5000, isServed: false });
    expect(placeOf('tcp://[::1]:5000')).toMatchObject({ host: '::1', port: 5000 });
    expect(placeOf('file:///scratch/my%20run?rank=1')).toEqual({
      kind: 'file',
      directory: '/scratch/my run',
    });
  });

  it('takes the address of the store from MASTER_ADDR and MASTER_PORT if the caller gives the rank', () => {
    const env = { MASTER_ADDR: 'head', MASTER_PORT: '5000' };
    for (const options of [{}, { url: 'env://' }]) {
      const { store, via } = planInit({ ...options, rank: 0, size: 2 }, env);
      expect(store).toMatchObject({ kind: 'tcp', host: 'head', port: 5000, isServed: false });
      expect(via).toBe(null);
    }
    expect(messageOf({ rank: 0, size: 2 }, { MASTER_ADDR: 'head' })).toBe(
      'init: MASTER_PORT is not set and the caller does not tell where rank 0 is. Set MASTER_PORT to the same value ' +
        "for all ranks, or pass url: 'tcp://HOST:PORT', the address at which rank 0 listens.",
    );
    expect(messageOf({ rank: 0, size: 2 }, { ...env, MASTER_PORT: 'x' })).toContain('MASTER_PORT is');
  });

  it('connects to the agent’s store at exactly its address, and hosts any other', () => {
    const isServed = (options: InitOptions, env = agent) => {
      const { store } = planInit(options, env);
      return store.kind === 'tcp' && store.isServed;
    };
    expect([isServed({}), isServed({ url: 'env://' }), isServed({ url: 'tcp://head:5000' })]).toEqual([
      true,
      true,
      true,
    ]);
    expect([
      isServed({ url: 'tcp://head:5001' }),
      isServed({}, { ...agent, TORCHELASTIC_USE_AGENT_STORE: 'False' }),
    ]).toEqual([false, false]);
  });

  it('shows the secret to stores of ringwise only, not to torchrun’s agent', () => {
    const secretOf = (env: Record<string, string>) => {
      const plan = planInit({}, { ...env, RINGWISE_SECRET: 's' });
      return plan.store.kind === 'tcp' && [plan.secret, plan.store.secret];
    };
    expect(secretOf(agent)).toEqual(['s', null]);
    expect(secretOf({ ...agent, RINGWISE_RUN_ID: 'r' })).toEqual(['s', 's']);
    expect(secretOf(launched)).toEqual(['s', 's']);
  });

  it('reads the secret from a file, unless the variable is set', () => {
    const folder = mkdtempSync(join(tmpdir(), 'ringwise-secret-'));
    const file = join(folder, 'secret');
    const env = { ...launched, RINGWISE_SECRET_FILE: file };
    const sentence = (reason: string) =>
      `init: RINGWISE_SECRET_FILE names ${file}, which has no secret (${reason}`;
    try {
      expect(messageOf({}, env)).toContain(sentence('ENOENT'));
      writeFileSync(file, '\n');
      expect(messageOf({}, env)).toContain(sentence('it is empty)'));
      writeFileSync(file, 's3cret\n');
      expect(planInit({}, env)).toMatchObject({ secret: 's3cret', store: { secret: 's3cret' } });
      expect(planInit({}, { ...env, RINGWISE_SECRET: 'other' }).secret).toBe('other');
      expect(planInit({}, { ...env, RINGWISE_SECRET: '' }).secret).toBeNull();
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(planInit({}, { RINGWISE_SECRET_FILE: file }).secret).toBeNull(); // a group of one has no use for it
  });

  it('meets on loopback when all ranks are on one host', () => {
    const oneHost = { ...launched, LOCAL_WORLD_SIZE: '4' };
    expect(planInit({}, oneHost).store).toMatchObject({ host: '127.0.0.1', port: 5000 });
    expect(planInit({}, { ...oneHost, TORCHELASTIC_USE_AGENT_STORE: 'True' }).store).toMatchObject({
      host: 'head',
    });
  });

  it('takes the deadline from the options, then RINGWISE_TIMEOUT_MS', () => {
    const env = { RINGWISE_TIMEOUT_MS: '1500' };
    expect([planInit({}, env).timeoutMs, planInit({ timeoutMs: 7 }, env).timeoutMs]).toEqual([1500, 7]);
    expect(messageOf({}, { RINGWISE_TIMEOUT_MS: 'soon' })).toMatch('got soon (RINGWISE_TIMEOUT_MS)');
    expect(messageOf({ timeoutMs: -1 })).toMatch(
      'timeoutMs is not usable; expected 1 to 2147483647 milliseconds, got -1',
    );
  });

  it.each([
    [{ RANK: '1' }, "RANK '1', WORLD_SIZE not set"],
    [{ WORLD_SIZE: '2' }, "RANK not set, WORLD_SIZE '2'"],
    [{ RANK: '1.5', WORLD_SIZE: '2' }, "RANK '1.5', WORLD_SIZE '2'"],
  ])('does not take a process for the only one where the environment is %j', (env, got) => {
    expect(messageOf({}, env)).toBe(
      `init: RANK and WORLD_SIZE do not name a rank; expected two whole numbers, got ${got}. Set both, or neither for a group of one; \`npx ringwise run\` sets them.`,
    );
    expect(planInit({ rank: 0, size: 1 }, env).size).toBe(1);
    expect(planInit({}, { ...env, PMI_RANK: '0', PMI_SIZE: '1' }).via).toBe('pmi');
  });

  it('refuses what cannot work', () => {
    const store = new MemoryStore();
    const pmi = { PMI_RANK: '0', PMI_SIZE: '2' };
    const messages = [
      messageOf({ url: 'env://' }),
      messageOf({ url: 'http://x' }),
      messageOf({ url: 'nonsense' }),
      messageOf({ url: 'tcp://head' }),
      messageOf({ url: 'file://scratch/run?rank=0&size=2' }),
      messageOf({ url: 'file://?rank=0&size=2' }),
      messageOf({ url: 'tcp://head:1', store }),
      messageOf({ store }),
      messageOf({ url: 'tcp://head:1' }),
      messageOf({ rank: 2, size: 2 }),
      messageOf({ rank: 1 }),
      messageOf({ url: 'tcp://head:1?rank=x&size=2' }),
      messageOf({}, { OMPI_COMM_WORLD_RANK: '0' }),
      messageOf({}, pmi),
      messageOf({}, { ...pmi, MPI_LOCALNRANKS: '2' }),
      ...['abc', '0', '99999', ' 80'].map((port) => messageOf({}, { ...pmi, MASTER_PORT: port })),
      messageOf({}, { RANK: '0', WORLD_SIZE: '99999999' }),
      messageOf({}, { RINGWISE_ALGO_ALL_REDUCE: 'ring' }),
      messageOf({}, { RINGWISE_ALGO_ALLREDUCE: 'ring' }),
    ];
    expect(`\n${messages.join('\n')}\n`).toMatchInlineSnapshot(`
      "
      init: env:// found no launcher in the environment; expected RANK and WORLD_SIZE, or the variables of srun or mpirun. Start the script with \`npx ringwise run\`, or pass rank, size and url.
      init: cannot use url 'http://x'; expected env://, tcp://host:port or file:///directory.
      init: cannot use url 'nonsense'; expected env://, tcp://host:port or file:///directory.
      init: cannot use url 'tcp://head'; expected tcp://host:port with a port from 1 to 65535.
      init: cannot use url 'file://scratch/run?rank=0&size=2'; expected file:///directory with three slashes and an absolute path.
      init: cannot use url 'file://?rank=0&size=2'; expected file:///directory with three slashes and an absolute path.
      init: store and url are both given; expected one of them.
      init: rank and size are unknown; expected both, as options, in the url or from a launcher.
      init: rank and size are unknown; expected both, as options, in the url or from a launcher.
      init: rank and size do not fit (from options); expected 0 <= rank < size, got rank 2, size 2.
      init: rank and size do not fit (from options); expected 0 <= rank < size, got rank 1, size none. Pass both, or neither: a launcher such as \`npx ringwise run\` sets them.
      init: rank and size do not fit (from url); expected 0 <= rank < size, got rank none, size 2. Pass both, or neither: a launcher such as \`npx ringwise run\` sets them.
      init: rank and size do not fit (from openmpi); expected 0 <= rank < size, got rank 0, size none.
      init: MASTER_ADDR is not set and pmi does not tell where rank 0 is. Set MASTER_ADDR to the same value for all ranks.
      init: MASTER_PORT is not set and pmi does not tell where rank 0 is. Set MASTER_PORT to the same value for all ranks.
      init: MASTER_PORT is 'abc'; expected a port from 1 to 65535. Set MASTER_PORT to the same port for all ranks.
      init: MASTER_PORT is '0'; expected a port from 1 to 65535. Set MASTER_PORT to the same port for all ranks.
      init: MASTER_PORT is '99999'; expected a port from 1 to 65535. Set MASTER_PORT to the same port for all ranks.
      init: MASTER_PORT is ' 80'; expected a port from 1 to 65535. Set MASTER_PORT to the same port for all ranks.
      init: the job has 99999999 ranks (from env); expected at most 65536. Check WORLD_SIZE.
      init: RINGWISE_ALGO_ALL_REDUCE names no verb; expected one of RINGWISE_ALGO_ALLREDUCE, RINGWISE_ALGO_BROADCAST, RINGWISE_ALGO_ALLGATHER, RINGWISE_ALGO_REDUCESCATTER, RINGWISE_ALGO_SEND, RINGWISE_ALGO_RECV, RINGWISE_ALGO_BARRIER, RINGWISE_ALGO_REDUCE, RINGWISE_ALGO_GATHER, RINGWISE_ALGO_SCATTER, RINGWISE_ALGO_ALLTOALL.
      accepted
      "
    `);
  });
});
