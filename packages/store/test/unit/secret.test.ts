import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type StoreServer, serveStore, TcpStore } from '../../src/index.ts';
import { RawClient } from '../support/raw-client.ts';

const hello = Buffer.from('\xf7rwauth1', 'latin1').toString('hex');
const denied = Buffer.from('\xf7rwdeny1', 'latin1').toString('hex');
const busy = Buffer.from('\xf7rwbusy1', 'latin1');
const nonce = 'ab'.repeat(32);
const timeoutMs = 60_000;

let server: StoreServer;
beforeEach(async () => {
  server = await serveStore({ secret: 'the secret' });
});
afterEach(async () => {
  vi.useRealTimers();
  await server.close();
});

function proofOf(role: string, clientNonce: string, serverNonce: string, secret = 'the secret'): string {
  const proof = createHmac('sha256', secret).update(`ringwise store handshake 1 ${role}`);
  return proof.update(Buffer.from(clientNonce + serverNonce, 'hex')).digest('hex');
}

it('turns away a client without the secret and tells it what to do', async () => {
  await expect(TcpStore.connect({ ...server, timeoutMs })).rejects.toMatchObject({
    code: 'ERR_STORE_AUTH',
    message: expect.stringMatching(/asks for a secret and this client has none.*RINGWISE_SECRET/),
  });
});

it('turns away a client with another secret', async () => {
  await expect(TcpStore.connect({ ...server, timeoutMs, secret: 'another' })).rejects.toMatchObject({
    code: 'ERR_STORE_AUTH',
    message: expect.stringContaining('different secrets'),
  });
});

it('takes the secret as bytes too', async () => {
  const store = await TcpStore.connect({
    ...server,
    timeoutMs,
    secret: new TextEncoder().encode('the secret'),
  });
  await store.set('k', 'v');
  await store.close();
});

it('a client with a secret refuses a server without one', async () => {
  const open = await serveStore();
  await expect(TcpStore.connect({ ...open, timeoutMs: 8_000, secret: 'the secret' })).rejects.toMatchObject({
    code: 'ERR_STORE_AUTH',
    message: expect.stringContaining('cannot prove that it knows the secret'),
  });
  await open.close();
});

it('answers the right proof with its own, and then serves', async () => {
  const client = await RawClient.connect(server);
  client.send(hello + nonce);
  expect(await client.take(8)).toBe(hello);
  const serverNonce = await client.take(32);
  client.send(`${proofOf('client', nonce, serverNonce)} 00 cef7853c 0d 01020304`);
  expect(await client.take(44)).toBe(`${hello}${proofOf('server', nonce, serverNonce)}01020304`);
});

it('never reuses a nonce', async () => {
  const nonces = new Set<string>();
  for (let count = 0; count < 5; count++) {
    const client = await RawClient.connect(server);
    client.send(hello + nonce);
    await client.take(8);
    nonces.add(await client.take(32));
    client.socket.destroy();
  }
  expect(nonces.size).toBe(5);
});

it('lets no request of a program without the secret reach the store', async () => {
  const store = await TcpStore.connect({ ...server, timeoutMs, secret: 'the secret' });
  const before = await store.numKeys();
  const set = '01 ⟨2⟩ 2f61 ⟨2⟩ 6869';
  for (const start of [
    '00 cef7853c',
    '',
    hello,
    hello + nonce,
    hello + nonce + nonce,
    `${hello}${nonce}00cef7853c`,
  ]) {
    const client = await RawClient.connect(server);
    client.send(`${start} ${set} ${set.repeat(8)}`);
    expect((await client.untilClosed()).endsWith(denied)).toBe(true);
  }
  expect(await store.numKeys()).toBe(before);
  await store.close();
});

it('does not accept the proof of the other role', async () => {
  const client = await RawClient.connect(server);
  client.send(hello + nonce);
  await client.take(8);
  const serverNonce = await client.take(32);
  client.send(proofOf('server', nonce, serverNonce));
  expect(await client.untilClosed()).toBe(denied);
});

it('a client does not accept its own proof sent back', async () => {
  const mirror = createServer((socket: Socket) => socket.on('error', () => {}).pipe(socket));
  await once(mirror.listen(0, '127.0.0.1'), 'listening');
  const { port } = mirror.address() as AddressInfo;
  // The second reply is only a proof, without a hello. A mirror that adds a hello fails because of its role.
  await expect(
    TcpStore.connect({ host: '127.0.0.1', port, timeoutMs, secret: 'the secret' }),
  ).rejects.toMatchObject({ code: 'ERR_STORE_AUTH' });
  mirror.close();

  const prefixing = createServer((socket: Socket) => {
    socket.on('error', () => {});
    socket.once('data', (first) => {
      socket.write(first);
      socket.once('data', (proof) => socket.write(Buffer.concat([Buffer.from(hello, 'hex'), proof])));
    });
  });
  await once(prefixing.listen(0, '127.0.0.1'), 'listening');
  const address = { host: '127.0.0.1', port: (prefixing.address() as AddressInfo).port };
  await expect(TcpStore.connect({ ...address, timeoutMs, secret: 'the secret' })).rejects.toMatchObject({
    code: 'ERR_STORE_AUTH',
    message: expect.stringContaining('cannot prove'),
  });
  prefixing.close();
});

it('tells of clients without the secret that it turns away', async () => {
  const addresses: string[] = [];
  const watched = await serveStore({
    secret: 'the secret',
    onPlainClient: (address) => addresses.push(address),
  });
  await expect(TcpStore.connect({ ...watched, timeoutMs })).rejects.toThrow('asks for a secret');
  await expect(TcpStore.connect({ ...watched, timeoutMs, secret: 'another' })).rejects.toThrow('different');
  const other = await RawClient.connect(watched);
  other.send(Buffer.from('GET / HTTP/1.1').toString('hex'));
  await other.untilClosed();
  expect(addresses).toEqual(['127.0.0.1']);
  await watched.close();
});

it('a client that is turned away again and again learns why, and where', async () => {
  const full = createServer((socket) => socket.on('error', () => {}).end(busy));
  await once(full.listen(0, '127.0.0.1'), 'listening');
  const { port } = full.address() as AddressInfo;
  for (const secret of ['the secret', undefined]) {
    const address = { host: '127.0.0.1', port, timeoutMs: 300, ...(secret && { secret }) };
    await expect(TcpStore.connect(address)).rejects.toMatchObject({
      code: 'ERR_STORE_BUSY',
      message: expect.stringMatching(
        `turned this client away for 300 ms, in \\d+ attempts: it has too many unauthenticated connections .tcp 127.0.0.1:${port}.`,
      ),
    });
  }
  full.close();
});

it('a client that must make room is told so', async () => {
  const first = await RawClient.connect(server);
  const others: RawClient[] = [];
  for (let count = 0; count < 256; count++) others.push(await RawClient.connect(server));
  expect(await first.untilClosed()).toBe(busy.toString('hex'));
  for (const { socket } of others) socket.destroy();
});

it('drops a client that does not finish the authentication', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const client = await RawClient.connect(server);
  client.send(hello + nonce);
  await client.take(40);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await client.untilClosed()).toBe('');
});
