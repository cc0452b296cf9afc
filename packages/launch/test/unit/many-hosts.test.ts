// Runs 256 launchers in one process with the real store, mailboxes, coordinator and launcher side, but without ranks.

import { serveStore, TcpStore } from '@ringwise/store';
import { afterEach, expect, it } from 'vitest';
import { coordinate } from '../../src/rendezvous/coordinate.ts';
import type { StartOrder } from '../../src/rendezvous/messages.ts';
import { takePart } from '../../src/rendezvous/take-part.ts';

// They take 4 s of the processor, for which a busy machine takes minutes.
const hosts = 256;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function connect(port: number): Promise<TcpStore> {
  const store = await TcpStore.connect({ host: '127.0.0.1', port, timeoutMs: 200_000 });
  closers.push(() => store.close());
  return store;
}

it('the launchers meet, get their ranks, and end together', async () => {
  const server = await serveStore();
  closers.push(server.close);
  const keepAlive = { everyMs: 1_000, attempts: 60 };
  const own = await connect(server.port);
  const options = { self: 'host 0', minNodes: hosts, maxNodes: hosts, joinTimeoutMs: 200_000 };
  const coordination = coordinate(
    own,
    { ...options, lastCallMs: 0, maxRestarts: 0, settle: { causeMs: 500, secondaryMs: 2_000 } },
    keepAlive,
  );
  const started: StartOrder[] = [];
  const outcomes = Array.from({ length: hosts }, async (_, index) => {
    const id = `host ${index}`;
    const part = takePart({
      member: { id, host: id, nproc: 2, nodeRank: null },
      store: index === 0 ? own : await connect(server.port),
      where: 'here',
      keepAlive: index === 0 ? null : keepAlive,
      say: () => {},
      start: async (order) => {
        started.push(order);
        const done = Promise.resolve({ outcomes: [], startedNs: 0n });
        return { pids: [], done, stop: () => {}, interrupt: () => {} };
      },
    });
    return await part.outcome;
  });
  expect(await Promise.all(outcomes)).toEqual(Array(hosts).fill({ exitCode: 0, text: null, blamed: null }));
  await coordination.close();
  expect(started.map(({ firstRank }) => firstRank).sort((a, b) => a - b)).toEqual(
    Array.from({ length: hosts }, (_, index) => 2 * index),
  );
  expect(new Set(started.map(({ worldSize }) => worldSize))).toEqual(new Set([2 * hosts]));
});
