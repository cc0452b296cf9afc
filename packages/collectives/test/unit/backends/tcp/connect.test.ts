// Meeting over TCP among processes that do not belong to the group. All ranks are in this process.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { MemoryStore } from '@ringwise/store';
import { expect, it, onTestFinished, vi } from 'vitest';
import { tcpBackend } from '../../../../src/backends/tcp/tcp.ts';
import { exchange } from '../../../../src/init/exchange.ts';
import { tcpContext } from '../../../support/tcp-groups.ts';

interface Card {
  readonly host: string;
  readonly port: number;
}

async function cardOf(rank: number, store: MemoryStore): Promise<Card> {
  const card = await store.get(`rank/${rank}`, { timeoutMs: 60_000 });
  return JSON.parse(Buffer.from(card).toString()) as Card;
}

/** Connects to a rank and sends these bytes, which are no proof. */
async function connectUnproven({ host, port }: Card, bytes: Uint8Array): Promise<Socket> {
  const socket = connect(port, host);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.resume().write(bytes);
  return socket;
}

it('ranks meet although others connect without a proof, whose connections are closed', async () => {
  const store = new MemoryStore();
  const first = tcpBackend(tcpContext(0, 2, store));
  const card = await cardOf(0, store);
  // A hello of rank 1 whose proof is wrong, one that is cut off, what a browser says, and nothing.
  const hello = Buffer.alloc(48);
  hello.writeUInt32LE(0x54475752, 0);
  hello.writeUInt8(2, 4);
  hello.writeInt32LE(1, 8);
  const said = [
    hello,
    hello.subarray(0, 20),
    Buffer.from(`GET / HTTP/1.1\r\n${'x'.repeat(100)}`),
    Buffer.alloc(0),
  ];
  const unproven = await Promise.all(said.map((bytes) => connectUnproven(card, bytes)));
  const closed = Promise.all(unproven.map((socket) => once(socket, 'close')));
  const backends = await Promise.all([first, tcpBackend(tcpContext(1, 2, store))]);
  for (const socket of unproven) socket.end();
  await closed;
  await Promise.all(backends.map((backend) => backend.close()));
});

it('a rank with another secret and the others turn each other away', async () => {
  const store = new MemoryStore();
  const [first, second] = await Promise.allSettled([
    tcpBackend(tcpContext(0, 2, store)),
    tcpBackend({ ...tcpContext(1, 2, store), secret: 'another one' }),
  ]);
  expect(first).toMatchObject({ reason: { code: 'ERR_COLL_PEER_LOST', verb: 'init', peers: [1] } });
  expect(second).toMatchObject({ reason: { code: 'ERR_COLL_PEER_LOST', verb: 'init', peers: [0] } });
});

it('the error for a rank that does not come names the group, since a subgroup numbers its ranks anew', async () => {
  const context = { ...tcpContext(1, 2, new MemoryStore()), group: 'world[2,0]', timeoutMs: 20 };
  await expect(tcpBackend(context)).rejects.toMatchObject({
    ...{ code: 'ERR_COLL_INIT', peers: [0], group: 'world[2,0]', rank: 1, size: 2 },
    message: expect.stringMatching(
      /^init: rank 0 of 2 did not arrive within 20 ms \(group "world\[2,0\]", rank 1 of 2\)/u,
    ),
  });
});

it('a rank that ends after it has told its address is lost, for lower and for higher ranks', async () => {
  const store = new MemoryStore();
  // The server is closed below, so a connection to this address is refused.
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  const card = { backend: 'tcp', host: '127.0.0.1', port, nonce: '00' };
  const ranks = [0, 2].map((rank) => tcpBackend(tcpContext(rank, 3, store)));
  const settled = Promise.allSettled(ranks);
  await exchange(store, 1, 3, Buffer.from(JSON.stringify(card)), 60_000);
  for (const outcome of await settled)
    expect(outcome).toMatchObject({ reason: { code: 'ERR_COLL_PEER_LOST', verb: 'init', peers: [1] } });
});

/** Serves a way to `card` on which answers come 100 ms late. Returns its port. */
async function slowWayTo({ host, port }: Card): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ host, port, allowHalfOpen: true });
    near.pipe(far);
    setTimeout(() => far.pipe(near), 100);
    for (const socket of [near, far]) socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

it('a rank that leaves at once has come, although its answer on one connection is read after the end of the other', async () => {
  const [own, theirs] = [new MemoryStore(), new MemoryStore()];
  const first = tcpBackend(tcpContext(0, 2, own));
  const second = tcpBackend(tcpContext(1, 2, theirs));
  const card = await cardOf(0, own);
  const slow = { ...card, port: await slowWayTo(card) };
  await theirs.set('rank/0', JSON.stringify(slow));
  await own.set('rank/1', JSON.stringify(await cardOf(1, theirs)));
  // The last rank to come would write this. Without it, each rank would look again at its deadline.
  for (const store of [own, theirs]) await store.set('outcome', JSON.stringify({ kind: 'met' }));
  const left = first.then((backend) => backend.close());
  await (await second).close();
  await left;
});

it('connections that say nothing are closed, also before the ranks have met, and the others stay', async () => {
  // The clock of the backend moves when the test moves it.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const store = new MemoryStore();
  const first = tcpBackend(tcpContext(0, 2, store));
  const card = await cardOf(0, store);
  const connect = () => connectUnproven(card, Buffer.alloc(0));
  // More than rank 0 keeps. The oldest ones are closed for those that come later, the rest after five seconds.
  const silent = await Promise.all(Array.from({ length: 300 }, connect));
  const open = () => silent.filter((socket) => !socket.readableEnded && !socket.destroyed).length;
  await expect.poll(open).toBe(260);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(open()).toBe(260);
  await vi.advanceTimersByTimeAsync(1_000);
  await expect.poll(open).toBe(0);
  vi.useRealTimers();
  const backends = await Promise.all([first, tcpBackend(tcpContext(1, 2, store))]);
  for (const socket of silent) socket.destroy();
  await Promise.all(backends.map((backend) => backend.close()));
});

it('a rank that does not come is named at the deadline', async () => {
  const alone = tcpBackend({ ...tcpContext(0, 3), timeoutMs: 200 });
  await expect(alone).rejects.toMatchObject({ code: 'ERR_COLL_INIT', peers: [1, 2] });
});
