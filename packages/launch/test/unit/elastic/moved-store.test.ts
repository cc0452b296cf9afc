// How a launcher finds the store to which the ranks of its job have moved.
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { afterEach, expect, test } from 'vitest';
import { elasticStore, headKey, viewKey } from '../../../src/rendezvous/elastic/elastic-keys.ts';
import { findMovedStore } from '../../../src/rendezvous/elastic/moved-store.ts';
import { RankStores } from '../../../src/rendezvous/elastic/rank-stores.ts';
import type { ViewFacts } from '../../../src/rendezvous/elastic/view-facts.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function serve(): Promise<StoreServer> {
  const server = await serveStore({ secret: 'of the test' });
  closing.push(() => server.close());
  return server;
}

const addressOf = ({ port }: StoreServer) => `127.0.0.1:${port}`;

async function client({ port }: StoreServer, run = 'run') {
  const store = await TcpStore.connect({ host: '127.0.0.1', port, secret: 'of the test' });
  closing.push(() => store.close());
  return elasticStore(run, store);
}

/** Writes a view of three hosts that keep these stores ready. */
async function write(
  server: StoreServer,
  { epoch, number, ended = null }: { epoch: number; number: number; ended?: string | null },
  standbys: readonly string[] = [],
  run = 'run',
): Promise<void> {
  const members = standbys.map((standby, slot) => ({ id: `${slot}.0`, standby }));
  const view = { number, epoch, members, joined: [], lost: [], left: [], finalSteps: 10 * number, ended };
  const store = await client(server, run);
  await store.set(viewKey(number), JSON.stringify(view));
  await store.set(headKey, `${number}`);
}

const never = new AbortController().signal;
const job = { runId: 'run', secret: 'of the test' };

test('is the one with views of the job, of the last move', { timeout: 60_000 }, async () => {
  const servers = [await serve(), await serve(), await serve(), await serve()];
  const addresses = servers.map(addressOf);
  await servers[0]!.close(); // its host is lost
  await write(servers[1]!, { epoch: 1, number: 9 });
  await write(servers[2]!, { epoch: 2, number: 8 });
  await write(servers[3]!, { epoch: 3, number: 1 }, [], 'another run');
  const found = await findMovedStore({ addresses, ...job }, 0, never);
  closing.push(() => found!.close());
  expect(found).toMatchObject({ host: '127.0.0.1', port: servers[2]!.port, view: { epoch: 2, number: 8 } });
});

test('is waited for, until the deadline or the signal', { timeout: 60_000 }, async () => {
  const server = await serve();
  const search = { addresses: [addressOf(server)], ...job };
  expect(await findMovedStore(search, 0, never)).toBe(null);
  const stop = new AbortController();
  const stopped = findMovedStore(search, 60_000, stop.signal);
  stop.abort(new Error('stopped by the test'));
  await expect(stopped).rejects.toThrow('stopped by the test');
  const found = findMovedStore(search, 60_000, never);
  await write(server, { epoch: 1, number: 3 });
  expect((await found)?.view.number).toBe(3);
  await (await found)?.close();
});

test('is followed from host to host, and each view is shown once', { timeout: 60_000 }, async () => {
  const [first, second, third] = [await serve(), await serve(), await serve()];
  const standbys = [first, second, third].map(addressOf);
  await write(first, { epoch: 0, number: 4 }, standbys);
  const shown: ViewFacts[] = [];
  const at = { ...job, masterAddr: '127.0.0.1', masterPort: first.port };
  const stores = new RankStores(await client(first), at, (view) => shown.push(view));
  closing.push(() => stores.close());
  await expect.poll(() => shown.length, { timeout: 20_000 }).toBe(1);
  await first.close();
  await write(second, { epoch: 0, number: 4 }, standbys); // the members have opened it with the view that they have
  await write(second, { epoch: 1, number: 5 }, standbys);
  expect(await stores.follow(never)).toBe(true);
  expect(stores.movedTo).toEqual({ masterAddr: '127.0.0.1', masterPort: second.port });
  expect(await stores.follow(never)).toBe(true);
  await second.close();
  await write(third, { epoch: 2, number: 5 }, standbys);
  expect(await stores.follow(never)).toBe(true);
  expect(stores.movedTo).toMatchObject({ masterPort: third.port });
  await write(third, { epoch: 2, number: 6, ended: 'too few' }, standbys);
  expect(await stores.follow(never)).toBe(false);
  expect(shown.map(({ epoch, number }) => [epoch, number])).toEqual([
    [0, 4],
    [1, 5],
    [2, 5],
    [2, 6],
  ]);
});

test('is not looked for if the members cannot move', { timeout: 60_000 }, async () => {
  const [first, second] = [await serve(), await serve()];
  await write(first, { epoch: 0, number: 0 }, [first, second].map(addressOf));
  const at = { ...job, masterAddr: '127.0.0.1', masterPort: first.port };
  const stores = new RankStores(await client(first), at, () => {});
  closing.push(() => stores.close());
  await expect.poll(() => stores.view, { timeout: 20_000 }).not.toBe(null);
  expect(await stores.follow(never)).toBe(true); // it still answers
  stores.loseFirst();
  expect(await stores.follow(never)).toBe(false);
});
