// Race 16: a process is killed between two requests to the store, and the store may stop answering. What a process
// posts is one request or leaves a gap that the others step over, and each call has a deadline.
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { MemoryStore, PrefixStore, serveStore, TcpStore } from '@ringwise/store';
import { afterEach, describe, expect, test } from 'vitest';
import { Chain } from '../../../../src/membership/chain.ts';
import { jobPrefix, wishCountKey, wishKey } from '../../../../src/membership/keys.ts';
import type { Report, View, Wish } from '../../../../src/membership/protocol/view.ts';
import { foundJob, join, step, stepsUntilChange } from '../../../support/in-process.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const report = (member: string): Report => ({
  ...{
    member,
    view: 0,
    finalSteps: 0,
    isComplete: false,
    hasState: true,
    wasConnected: true,
    unreachable: [],
  },
  ...{ isLeaving: false, isDone: false, failure: null },
});
const wish: Wish = { id: 'late', slot: null, host: 'h', process: null, standby: null };
const view: View = {
  ...{ number: 0, epoch: 0, members: [], joined: [], lost: [], left: [], finalSteps: 0, decision: 'redo' },
  ...{ unsettled: [], wishes: 0, unread: [], failure: null, ended: null, isOver: false },
};

test('a process has taken a number for its wish and has died: the ones after it join', async () => {
  const store = new MemoryStore();
  const options = { store, runId: 'gap', size: 1 };
  const [first] = await foundJob(1, options);
  const keys = new PrefixStore(jobPrefix('gap'), store);
  let steps = 0;
  for (const id of [1, 2]) {
    await keys.add(wishCountKey, 1);
    const joining = join(options);
    steps = await stepsUntilChange([first!], steps);
    const second = await joining;
    expect(second.view.members).toHaveLength(2);
    expect(second.view.unread).toHaveLength(id);
    second.leave();
    await step([first!, second], steps++);
  }
  // The text of the first one comes after all: it is read, too.
  const { unread } = first!.view;
  const texts = new Chain({ job: keys, answerMs: 40_000 });
  const stop = new AbortController();
  const seen = texts.wished(first!.view, stop.signal).then(() => 'seen');
  await keys.set(wishKey(unread[0]!), JSON.stringify(wish));
  expect(await seen).toBe('seen');
  await first!.close();
});

test('reports that many members write at once are all there, and whole', async () => {
  const server = await serveStore({});
  closing.push(() => server.close());
  const ids = Array.from({ length: 24 }, (_, k) => `member ${k} ${'x'.repeat(5_000)}`);
  const chains = await Promise.all(
    ids.map(async () => {
      const job = await TcpStore.connect({ host: '127.0.0.1', port: server.port });
      closing.push(() => job.close());
      return new Chain({ job, answerMs: 40_000 });
    }),
  );
  await Promise.all(chains.map((chain, k) => chain.report(report(ids[k]!))));
  const { reports } = await chains[0]!.read({ view: 0, wishes: 0, unread: [], ids: [] });
  expect(reports.map(({ member }) => member).sort()).toEqual([...ids].sort());
});

test('a wish that another member deletes while this one reads it is not waited for', async () => {
  const store = new MemoryStore();
  await store.add(wishCountKey, 1);
  await store.set(wishKey(1), JSON.stringify(wish));
  let isDeleted = false;
  const deleteIt = async (): Promise<void> => {
    isDeleted = true;
    await store.delete(wishKey(1));
  };
  // The first request that names the wish is answered, and then the wish is gone.
  const job = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const answer = (await Reflect.apply(value, target, args)) as unknown;
        if (!isDeleted && [args[0]].flat().includes(wishKey(1))) await deleteIt();
        return answer;
      };
    },
  });
  const chain = new Chain({ job, answerMs: 40_000 });
  const { wishes } = await chain.read({ view: 0, wishes: 0, unread: [], ids: [] });
  expect(isDeleted).toBe(true);
  expect(wishes).toEqual([{ number: 1, wish }]);
});

/** A network between a store and its clients that can fall silent without an end of its connections. */
class Network {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, port: number) {
    this.#server = server;
    server.on('connection', (client) => {
      const store = dial(port, '127.0.0.1');
      for (const [socket, other] of [
        [client, store],
        [store, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => other.destroy());
        socket.pipe(other);
      }
    });
  }

  static async open(port: number): Promise<{ readonly network: Network; readonly port: number }> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { network: new Network(server, port), port: (server.address() as { port: number }).port };
  }

  fallSilent(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

test('a store that turns further connections away for a while is not taken for lost', async () => {
  const server = await serveStore({});
  closing.push(() => server.close());
  let connections = 0;
  let isBusy = true;
  const door = createServer((client) => {
    client.on('error', () => {});
    if (++connections > 1 && isBusy) {
      client.end('\xf7rwbusy1', 'latin1');
      return;
    }
    const store = dial(server.port, '127.0.0.1').on('error', () => {});
    for (const [socket, other] of [
      [client, store],
      [store, client],
    ] as const) {
      socket.on('close', () => other.destroy());
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  closing.push(() => door.close());
  const job = await TcpStore.connect({ host: '127.0.0.1', port: (door.address() as { port: number }).port });
  closing.push(() => job.close());
  const chain = new Chain({ job, answerMs: 40_000 });
  const next = chain.next(-1, new AbortController().signal).catch((error: unknown) => error);
  // More than a client tries within a second, after which it gives up and looks again.
  await expect.poll(() => connections).toBeGreaterThan(20);
  isBusy = false;
  await chain.propose(view);
  expect(await next).toMatchObject({ number: 0 });
});

describe('a store that does not answer any more ends with a sentence', () => {
  const calls: Record<string, (chain: Chain, signal: AbortSignal) => Promise<unknown>> = {
    wish: (chain) => chain.wish(wish),
    head: (chain) => chain.head(),
    report: (chain) => chain.report(report('a')),
    propose: (chain) => chain.propose(view),
    open: (chain) => chain.open(view),
    read: (chain) => chain.read({ view: 0, wishes: 0, unread: [1], ids: ['a'] }),
    next: (chain, signal) => chain.next(0, signal),
    wished: (chain, signal) => chain.wished(view, signal),
    ask: (chain) => chain.ask('a', {}),
    asks: (chain) => chain.asks('a'),
    hasReports: (chain) => chain.hasReports(0),
    ended: (chain) => chain.ended(['a']),
    announce: (chain) => chain.announce(view, null),
  };

  test('each call of a member', async () => {
    const server = await serveStore({});
    closing.push(() => server.close());
    const { network, port } = await Network.open(server.port);
    closing.push(() => network.close());
    const job = await TcpStore.connect({ host: '127.0.0.1', port });
    closing.push(() => job.close());
    const chain = new Chain({ job, answerMs: 300 });
    network.fallSilent();
    const { signal } = new AbortController();
    const ends = await Promise.allSettled(Object.values(calls).map((call) => call(chain, signal)));
    for (const [i, name] of Object.keys(calls).entries())
      expect([name, ends[i]]).toMatchObject([name, { reason: { code: 'ERR_ELASTIC_STORE' } }]);
  });
});
