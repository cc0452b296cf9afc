// Runs several ranks as tasks of this process, over every kind of store. A registered backend hands out the ends of
// a loopback hub, so that only init() itself is under test.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { MemoryStore, type Store, StoreError, serveStore, TcpStore } from '@ringwise/store';
import { freePort, withDeadlines } from '@ringwise/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Backend,
  type BackendContext,
  CollectiveError,
  exchange,
  type Group,
  type InitOptions,
  init,
  loopback,
  registerBackend,
} from '../../../src/index.ts';

const hubs = new Map<string, Backend[]>();
const contexts: BackendContext[] = [];
registerBackend('hub', async (context) => {
  contexts.push(context);
  const { store, rank, size, timeoutMs } = context;
  // Rank 0's payload is unique to this rendezvous, so all ranks find the same hub.
  const [key] = await exchange(store, rank, size, Buffer.from(`hub ${hubs.size} ${rank}`), timeoutMs);
  const hub = hubs.get(String(key)) ?? loopback(size, context.group);
  hubs.set(String(key), hub);
  return hub[rank] as Backend;
});

const cleanups: (() => unknown)[] = [];
beforeEach(() => {
  contexts.length = 0;
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function initAll(size: number, options: (rank: number) => InitOptions): Promise<Group[]> {
  return Promise.all(
    Array.from({ length: size }, (_, rank) =>
      init({ backend: 'hub', timeoutMs: 60_000, rank, size, ...options(rank) }),
    ),
  );
}

async function sumOfRanks(groups: readonly Group[]): Promise<number[]> {
  const buffers = groups.map(({ rank }) => Float32Array.of(rank));
  await Promise.all(groups.map((group, i) => group.allReduce(buffers[i] as Float32Array)));
  return buffers.map(([sum]) => sum as number);
}

const closeAll = (groups: readonly Group[]) => Promise.all(groups.map((group) => group.close()));

describe('init', () => {
  it('gives a process without a launcher a group of one that works', async () => {
    const group = await init();
    const x = Float32Array.of(1, 2);
    group.allReduceSync(x, { op: 'premulSum', factor: 3 });
    await group.barrier();
    expect([group.rank, group.size, group.backend, [...x]]).toEqual([0, 1, 'solo', [3, 6]]);
    await group.close();
  });

  it('meets in a store that the caller gives, and leaves it open', async () => {
    const store = new MemoryStore();
    const groups = await initAll(3, () => ({ store }));
    expect(await sumOfRanks(groups)).toEqual([3, 3, 3]);
    await closeAll(groups);
    await store.set('still', 'open');
  });

  it('meets in a directory', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'ringwise-init-'));
    cleanups.push(() => rm(directory, { recursive: true }));
    const groups = await initAll(2, () => ({ url: pathToFileURL(directory).href }));
    expect(await sumOfRanks(groups)).toEqual([1, 1]);
    await closeAll(groups);
  });

  it('meets at a port that rank 0 hosts, group after group, and frees it', async () => {
    const url = `tcp://127.0.0.1:${await freePort()}`;
    for (let round = 0; round < 2; round++) {
      const groups = await initAll(3, () => ({ url }));
      expect(await sumOfRanks(groups)).toEqual([3, 3, 3]);
      await closeAll(groups);
    }
    await expect(
      TcpStore.connect({ host: '127.0.0.1', port: Number(new URL(url).port), timeoutMs: 50 }),
    ).rejects.toThrow('no store answered');
  });

  it('lets a rank go on to the next group while rank 0 still closes the first', async () => {
    const url = `tcp://127.0.0.1:${await freePort()}`;
    const first = await initAll(2, () => ({ url }));
    const eager = (async () => {
      await first[1]?.close();
      return await init({ backend: 'hub', url, rank: 1, size: 2, timeoutMs: 60_000 });
    })();
    await first[0]?.close();
    const second = await Promise.all([
      init({ backend: 'hub', url, rank: 0, size: 2, timeoutMs: 60_000 }),
      eager,
    ]);
    expect(await sumOfRanks(second)).toEqual([1, 1]);
    await closeAll(second);
  });

  it('opens several groups at once on one port, by name and by order', async () => {
    const url = `tcp://127.0.0.1:${await freePort()}`;
    const a = await initAll(2, () => ({ url, name: 'a' }));
    const b = await initAll(2, () => ({ url, name: 'b' }));
    const again = await initAll(2, () => ({ url, name: 'a' }));
    await closeAll(a);
    expect([await sumOfRanks(b), await sumOfRanks(again)]).toEqual([
      [1, 1],
      [1, 1],
    ]);
    await closeAll([...b, ...again]);
  });

  it("connects to the launcher's store and never binds its port", async () => {
    const server = await serveStore();
    cleanups.push(() => server.close());
    const launched: Record<string, string> = {
      WORLD_SIZE: '2',
      LOCAL_WORLD_SIZE: '2',
      MASTER_ADDR: server.host,
      MASTER_PORT: String(server.port),
      TORCHELASTIC_RUN_ID: 'job',
      TORCHELASTIC_RESTART_COUNT: '1',
      TORCHELASTIC_USE_AGENT_STORE: 'True',
    };
    for (const name of [...Object.keys(launched), 'RANK', 'LOCAL_RANK'])
      cleanups.push(() => delete process.env[name]);
    Object.assign(process.env, launched);
    // The environment is read when init() is called, before it waits for anything.
    const starts = [0, 1].map((rank) => {
      Object.assign(process.env, { RANK: String(rank), LOCAL_RANK: String(rank) });
      return init({ backend: 'hub', timeoutMs: 60_000 });
    });
    const groups = await Promise.all(starts);
    expect(await sumOfRanks(groups)).toEqual([1, 1]);
    expect(
      contexts.map(({ localRank, localSize, masterHost }) => [localRank, localSize, masterHost]),
    ).toEqual([
      [0, 2, server.host],
      [1, 2, server.host],
    ]);
    const store = await TcpStore.connect({ host: server.host, port: server.port });
    expect(await store.check(['ringwise/job/1/world/attempts/0'])).toBe(true);
    await store.close();
    await closeAll(groups);
  });

  it('counts the ranks of this host where no launcher tells', async () => {
    const store = new MemoryStore();
    await closeAll(await initAll(3, () => ({ store })));
    const found = contexts.map(({ rank, localRank, localSize }) => [rank, localRank, localSize]).sort();
    expect(found).toEqual([
      [0, 0, 3],
      [1, 1, 3],
      [2, 2, 3],
    ]);
  });
});

describe('init that fails', () => {
  const failureOf = async (promise: Promise<unknown>): Promise<CollectiveError> => {
    const error = await promise.then(
      () => null,
      (error) => error,
    );
    expect(CollectiveError.is(error)).toBe(true);
    return error as CollectiveError;
  };

  it.each(['store', 'port'])(
    'names the ranks that did not arrive on every rank that did, by %s',
    async (by) => {
      await withDeadlines([1_500, 15_000], async (deadlineMs) => {
        const place =
          by === 'store' ? { store: new MemoryStore() } : { url: `tcp://127.0.0.1:${await freePort()}` };
        const two = [0, 1].map((rank) =>
          failureOf(init({ backend: 'hub', ...place, rank, size: 4, timeoutMs: deadlineMs + 500 * rank })),
        );
        for (const [rank, error] of (await Promise.all(two)).entries()) {
          expect([error.code, error.peers, error.rank]).toEqual(['ERR_COLL_INIT', [2, 3], rank]);
          // The rank whose time ends first decides, and its time is the one that the program has given.
          const within = [deadlineMs, deadlineMs + 500].map(
            (ms) => `init: ranks 2, 3 of 4 did not arrive within ${ms} ms (group "world", rank ${rank} of 4)`,
          );
          expect(within.filter((sentence) => error.message.startsWith(sentence))).toHaveLength(1);
        }
      });
    },
  );

  it('says which of the missing ranks are PyTorch with gloo', async () => {
    const store = new MemoryStore();
    await store.set('default_pg/0//cpu//0/1', 'its address');
    await store.set('0//cpu//0/2', 'its address');
    const error = await failureOf(init({ backend: 'hub', store, rank: 0, size: 4, timeoutMs: 100 }));
    expect(error.message).toMatch(
      /^init: ranks 1, 2, 3 of 4 did not arrive within \d+ ms; ranks 1, 2 are PyTorch with gloo: the store is shared, collectives are not \(group "world", rank 0 of 4\)\. See "Python and Node in one job" in docs\/launch\.md\.$/,
    );
    expect(error.peers).toEqual([1, 2, 3]);
  });

  it('works at the next try, also for a rank that was late at the first', async () => {
    const store = new MemoryStore();
    const early = [0, 1].map((rank) =>
      failureOf(init({ backend: 'hub', store, rank, size: 3, timeoutMs: 100 })),
    );
    await Promise.all(early);
    const late = init({ backend: 'hub', store, rank: 2, size: 3, timeoutMs: 60_000 });
    const others = [0, 1].map((rank) => init({ backend: 'hub', store, rank, size: 3, timeoutMs: 60_000 }));
    const groups = await Promise.all([...others, late]);
    expect(await sumOfRanks(groups)).toEqual([3, 3, 3]);
    await closeAll(groups);
  });

  it('says so when two processes have the same rank', async () => {
    const store: Store = new MemoryStore();
    await store.set('ringwise/run/0/world/owner/0', 'another process');
    const error = await failureOf(init({ backend: 'hub', store, rank: 0, size: 2 }));
    expect(error.message).toBe(
      'init: rank 0 has arrived already; expected every rank once (group "world", rank 0 of 2). ' +
        'Two processes have the same rank, or the store holds the keys of an earlier run.',
    );
  });

  it('says so when ranks were started with different sizes or backends', async () => {
    const store = new MemoryStore();
    const errors = await Promise.all([
      failureOf(init({ backend: 'hub', store, rank: 0, size: 2, timeoutMs: 60_000 })),
      failureOf(init({ backend: 'host', store, rank: 1, size: 2, timeoutMs: 60_000 })),
    ]);
    expect(errors[0].message).toMatch('rank 1 was started with backend host but rank 0 with hub');
    expect(errors[1].message).toMatch('rank 0 was started with backend hub but rank 1 with host');
  });

  it('says so when the port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    cleanups.push(() => server.close());
    const { port } = server.address() as { port: number };
    const error = await failureOf(init({ url: `tcp://127.0.0.1:${port}`, rank: 0, size: 2, backend: 'hub' }));
    expect(error.code).toBe('ERR_COLL_INIT');
    expect(error.message).toMatch(`init: rank 0 cannot host the store at 127.0.0.1:${port} (`);
    expect(error.message).toMatch('choose another MASTER_PORT');
  });

  it('finds the other rank 0 that has opened the store and claims its rank later', async () => {
    const server = await serveStore();
    cleanups.push(() => server.close());
    const store = await TcpStore.connect({ ...server, timeoutMs: 60_000 });
    cleanups.push(() => store.close());
    const failure = failureOf(
      init({ url: `tcp://127.0.0.1:${server.port}`, rank: 0, size: 2, backend: 'hub' }),
    );
    await setTimeout(200);
    await store.set('ringwise/run/0/world/owner/0', 'id process 4711 on elsewhere');
    const { what } = await failure;
    expect(what).toMatch('rank 0 has arrived already: process 4711 on elsewhere');
    const told = await failureOf(init({ store, backend: 'hub', rank: 1, size: 2, timeoutMs: 60_000 }));
    expect(told.what).toMatch(/^two processes are rank 0, process 4711 on elsewhere and process \d+ on /);
  });

  it('says so when there is no store to connect to', async () => {
    const url = `tcp://127.0.0.1:${await freePort()}`;
    const error = await failureOf(init({ url, rank: 1, size: 2, backend: 'hub', timeoutMs: 100 }));
    expect(error.message).toMatch(/^init: the store failed \(connect: no store answered within \d+ ms/);
  });

  it('says so when the store is gone before a subgroup or the remaining ranks can meet', async () => {
    const server = await serveStore();
    const stores = await Promise.all([0, 1].map(() => TcpStore.connect({ ...server, timeoutMs: 60_000 })));
    const groups = await initAll(2, (rank) => ({ store: stores[rank]! }));
    await server.close();
    const errors = await Promise.all([
      ...groups.map((group) => failureOf(group.split(0))),
      ...groups.map((group) => failureOf(group.subgroup([1, 0]))),
      ...groups.map((group) => failureOf(group.shrink({ without: [1 - group.rank], waitMs: 100 }))),
    ]);
    for (const [i, verb] of ['split', 'subgroup', 'shrink'].entries()) {
      for (const [rank, error] of errors.slice(2 * i, 2 * i + 2).entries()) {
        expect([error.code, error.verb, error.rank]).toEqual(['ERR_COLL_INIT', verb, rank]);
        expect(error.what).toMatch(/^the store failed \(/);
        expect(StoreError.isInstance(error.cause)).toBe(true);
      }
    }
    expect(groups.map(({ failure }) => failure)).toEqual([null, null]);
    await Promise.allSettled([
      ...groups.map((group) => group.close()),
      ...stores.map((store) => store.close()),
    ]);
  });

  it('lists the backends when one is unknown', async () => {
    const error = await failureOf(init({ backend: 'ucc' }));
    expect(error.message).toBe(
      "init: no backend named 'ucc'; expected auto, solo, host, tcp, nccl, mpi, hub. See registerBackend().",
    );
    expect((await failureOf(init({ backend: 'gloo' }))).next).toMatch(
      "PyTorch's gloo backend corresponds to 'host' here.",
    );
  });

  it('passes on the error of a backend and closes what it opened', async () => {
    registerBackend('broken', async () => {
      throw new Error('no such device');
    });
    const url = `tcp://127.0.0.1:${await freePort()}`;
    const starts = [0, 1].map((rank) => init({ backend: 'broken', url, rank, size: 2, timeoutMs: 60_000 }));
    for (const { status, reason } of (await Promise.allSettled(starts)) as PromiseRejectedResult[]) {
      expect([status, String(reason)]).toEqual(['rejected', 'Error: no such device']);
    }
    const again = createServer().listen(Number(new URL(url).port), '127.0.0.1');
    await once(again, 'listening');
    again.close();
  });

  it('refuses what is no backend', async () => {
    registerBackend('made-wrong', async () => ({}) as Backend);
    const error = await failureOf(init({ backend: 'made-wrong' }));
    expect(error.code).toBe('ERR_COLL_INIT');
    expect(error.message).toContain('init: the factory of the backend made something else than a Backend');
  });

  it('names the members that a backend lacks', async () => {
    registerBackend(
      'unfinished',
      async () => ({ contract: 1, name: 'unfinished', rank: 0, size: 1 }) as Backend,
    );
    const error = await failureOf(init({ backend: 'unfinished' }));
    expect(error.message).toContain('got one without supports, start, alloc, abort, close. docs/backends.md');
  });

  it('refuses a second backend of one name', () => {
    expect(() => registerBackend('hub', async () => loopback(1)[0] as Backend)).toThrow(
      "registerBackend: there is a backend named 'hub' already; expected a new name.",
    );
  });
});

it('gives a promise that is no group until it is awaited', async () => {
  const pending = init({ rank: 0, size: 1, store: new MemoryStore() });
  const group = pending as unknown as Group;
  const sentence = (member: string) =>
    `group.${member}: init() gives a promise, which was not awaited; expected const group = await init().`;
  expect(() => group.rank).toThrow(sentence('rank'));
  expect(() => group.allReduce(new Float32Array(1))).toThrow(sentence('allReduce'));
  const [awaited] = await Promise.all([pending]);
  expect([pending instanceof Promise, pending.constructor, awaited.size]).toEqual([true, Promise, 1]);
  await awaited.close();
});
