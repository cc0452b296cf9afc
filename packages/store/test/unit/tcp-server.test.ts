import { createServer } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ServeStoreOptions, type StoreServer, serveStore, TcpStore } from '../../src/index.ts';
import { maxPending } from '../../src/server/server-state.ts';
import { bytesOf, RawClient } from '../support/raw-client.ts';

const servers: StoreServer[] = [];
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function start(options?: ServeStoreOptions): Promise<StoreServer> {
  const server = await serveStore(options);
  servers.push(server);
  return server;
}

describe('a client that breaks the protocol', () => {
  const largest = 'ffffffffffffff7f';
  const faults: Record<string, string> = {
    'an unknown type byte': '00 cef7853c 63',
    'a key longer than 8 KiB': '00 cef7853c 03 ⟨8193⟩',
    'a key length that is negative': '00 cef7853c 03 ⟨-1⟩',
    'a value longer than 8 MiB': '00 cef7853c 01 ⟨2⟩ 2f61 ⟨8388609⟩',
    'a value length of 2^63 - 1': `00 cef7853c 01 ⟨2⟩ 2f61 ${largest}`,
    'more than 128 Ki keys': '00 cef7853c 06 ⟨131073⟩',
    'more than 128 Ki entries': '00 cef7853c 0b ⟨131073⟩',
    'an add to a value that is no number': '00 cef7853c 01 ⟨2⟩ 2f61 ⟨1⟩ 78 04 ⟨2⟩ 2f61 ⟨1⟩',
    'a second validation with other magic': '00 cef7853c 00 00000000',
    'text instead of a protocol': Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n').toString('hex'),
    'the hello of a client with a secret': 'f7 7277617574683100',
  };
  for (const [name, bytes] of Object.entries(faults)) {
    it(`is dropped for ${name}, and no other client`, async () => {
      const server = await start();
      const bystander = await RawClient.connect(server);
      bystander.send('00 cef7853c');
      const client = await RawClient.connect(server);
      client.send(bytes);
      expect(await client.untilClosed()).toBe('');
      expect((await bystander.ask('0d 01020304', '01020304')).got).toBe('01020304');
    });
  }

  it.each([
    ['the keys of a wait', `06 ⟨8193⟩`, '⟨8192⟩', 8192, 8192],
    ['the values of a multiSet', `0b ⟨9⟩`, '⟨1⟩ 61 ⟨8388607⟩', 8_388_607, 8],
  ])('is dropped when %s have more than 64 MiB together', async (_, head, lengths, bytes, times) => {
    const client = await RawClient.connect(await start());
    const part = Buffer.concat([bytesOf(lengths), Buffer.alloc(bytes, 'a')]);
    client.send(`00 cef7853c ${head}`);
    for (let i = 0; i < times; i++) client.socket.write(part);
    client.send('⟨1⟩ 61');
    expect(await client.untilClosed()).toBe('');
  });

  it('changes nothing when it leaves in the middle of a frame', async () => {
    const server = await start();
    const client = await RawClient.connect(server);
    client.send('00 cef7853c 01 ⟨2⟩ 2f61 ⟨5⟩ 6869');
    client.socket.end();
    await client.untilClosed();
    const other = await RawClient.connect(server);
    other.send('00 cef7853c');
    expect((await other.ask('05 ⟨1⟩ ⟨2⟩ 2f61', '01')).got).toBe('01');
  });

  it('leaves no waiter behind when it is gone', async () => {
    const server = await start();
    const client = await RawClient.connect(server);
    expect((await client.ask('00 cef7853c 06 ⟨1⟩ ⟨2⟩ 2f71 0d 01020304', '01020304')).got).toBe('01020304');
    client.socket.end();
    await client.untilClosed();
    // A queued item wakes one waiter only, which must not be the client that left.
    const other = await RawClient.connect(server);
    expect((await other.ask('00 cef7853c 0d 01020304', '01020304')).got).toBe('01020304');
    other.send('06 ⟨1⟩ ⟨2⟩ 2f71 0e ⟨2⟩ 2f71 ⟨1⟩ 76');
    expect(await other.take(1)).toBe('00');
  });
});

describe.each([
  ['with a secret', 'the secret'],
  ['without a secret', undefined],
])('connections that are not admitted, %s', (_, secret) => {
  const options = secret === undefined ? {} : { secret };
  const connect = (server: StoreServer) => TcpStore.connect({ ...server, ...options, timeoutMs: 60_000 });

  it.each([
    ['sends nothing', ''],
    ['sends half of what it must', secret === undefined ? '01 ⟨2⟩ 2f' : 'f7 72776175746831 abab'],
  ])('one that %s is closed after ten seconds', async (_, bytes) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const server = await start(options);
    const silent = await RawClient.connect(server);
    silent.send(bytes);
    // The server has served a client that came later, so it has also seen the bytes of the first one.
    const store = await connect(server);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await silent.untilClosed()).toBe('');
    expect(await store.add('n', 1)).toBe(1);
    await store.close();
  });

  it('one that sends a byte now and then is closed just as soon', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const server = await start(options);
    const slow = await RawClient.connect(server);
    const store = await connect(server);
    for (const byte of Buffer.from(secret === undefined ? '0100000000' : 'f772776175', 'hex')) {
      slow.socket.write(Buffer.of(byte));
      await store.add('n', 1);
      await vi.advanceTimersByTimeAsync(2_000);
    }
    expect(await slow.untilClosed()).toBe('');
    await store.close();
  });

  it('1,200 silent ones keep nobody out, and few stay open', async () => {
    const server = await start(options);
    const silent: RawClient[] = [];
    for (let count = 0; count < 1_200; count++) silent.push(await RawClient.connect(server));
    const stores = await Promise.all(Array.from({ length: 20 }, () => connect(server)));
    const open = () => silent.filter(({ socket }) => !socket.closed).length;
    await expect.poll(open).toBeLessThanOrEqual(maxPending);
    for (const { socket } of silent) socket.destroy();
    for (const store of stores) await store.close();
  });

  it('1,000 clients may come at once', async () => {
    const server = await start(options);
    const stores = await Promise.all(Array.from({ length: 1_000 }, () => connect(server)));
    const counts = await Promise.all(stores.map((store) => store.add('n', 1)));
    expect(Math.max(...counts)).toBe(1_000);
    for (const store of stores) await store.close();
  });
});

describe('clients of torch 1.13', () => {
  it('keep the second connection of each, which may stay silent', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const server = await start();
    const watch = await RawClient.connect(server);
    const another = await RawClient.connect(server);
    const client = await RawClient.connect(server);
    // In that version, add is request 3.
    expect((await client.ask('03 ⟨2⟩ 2f6e ⟨1⟩', '⟨1⟩')).got).toBe(bytesOf('⟨1⟩').toString('hex'));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await another.untilClosed()).toBe('');
    expect(watch.socket.closed).toBe(false);
    expect((await client.ask('03 ⟨2⟩ 2f6e ⟨1⟩', '⟨2⟩')).got).toBe(bytesOf('⟨2⟩').toString('hex'));
  });
});

describe('waits and barriers on the server', () => {
  it('answers later requests of a connection while its wait is pending', async () => {
    const client = await RawClient.connect(await start());
    client.send('00 cef7853c 06 ⟨1⟩ ⟨2⟩ 2f61');
    expect((await client.ask('0d 01020304', '01020304')).got).toBe('01020304');
    expect((await client.ask('01 ⟨2⟩ 2f61 ⟨0⟩', '00')).got).toBe('00');
  });

  it('forgets a wait that was cancelled', async () => {
    const client = await RawClient.connect(await start());
    expect((await client.ask('00 cef7853c 06 ⟨1⟩ ⟨2⟩ 2f61 0c', '01')).got).toBe('01');
    expect((await client.ask('01 ⟨2⟩ 2f61 ⟨0⟩ 0d 01020304', '01020304')).got).toBe('01020304');
    expect(client.untaken).toBe(0);
  });

  it('asks again for a key that was deleted while others were missing', async () => {
    const server = await start();
    const waiter = await RawClient.connect(server);
    const setter = await RawClient.connect(server);
    expect((await waiter.ask('00 cef7853c 06 ⟨2⟩ ⟨2⟩ 2f61 ⟨2⟩ 2f62 0d 01020304', '01020304')).got).toBe(
      '01020304',
    );
    const deleted = await setter.ask('00 cef7853c 01 ⟨2⟩ 2f61 ⟨0⟩ 08 ⟨2⟩ 2f61 01 ⟨2⟩ 2f62 ⟨0⟩', '⟨1⟩');
    expect(deleted.got).toBe(deleted.expected);
    expect((await waiter.ask('0d 01020304', '01020304')).got).toBe('01020304');
    setter.send('01 ⟨2⟩ 2f61 ⟨0⟩');
    expect(await waiter.take(1)).toBe('00');
  });

  it('releases a barrier when its last rank arrives, and wakes one waiter per queued item', async () => {
    const server = await start();
    const [a, b] = [await RawClient.connect(server), await RawClient.connect(server)];
    a.send('00 cef7853c 12 ⟨2⟩ 2f62 ⟨2⟩ 0d 01020304');
    expect(await a.take(4)).toBe('01020304');
    b.send('00 cef7853c 12 ⟨2⟩ 2f62 ⟨2⟩');
    expect([await a.take(1), await b.take(1)]).toEqual(['00', '00']);

    expect((await a.ask('06 ⟨1⟩ ⟨2⟩ 2f71 0d 01020304', '01020304')).got).toBe('01020304');
    expect((await b.ask('06 ⟨1⟩ ⟨2⟩ 2f71 0e ⟨2⟩ 2f71 ⟨1⟩ 76 0d 01020304', '01020304')).got).toBe('01020304');
    expect(await a.take(1)).toBe('00');
  });
});

describe('serveStore', () => {
  it('serves 50 clients that connect at once and wait for one another', async () => {
    const { host, port } = await start();
    const ranks = Array.from({ length: 50 }, async (_, rank) => {
      const store = await TcpStore.connect({ host, port });
      const arrived = await store.add('arrived', 1);
      await store.set(`rank${rank}`, String(rank));
      if (arrived === 50) await store.set('all', 'here');
      await store.wait(['all']);
      const values = await store.multiGet(Array.from({ length: 50 }, (_, other) => `rank${other}`));
      await store.close();
      return values.map((value) => Number(Buffer.from(value).toString()));
    });
    const expected = Array.from({ length: 50 }, (_, rank) => rank);
    for (const values of await Promise.all(ranks)) expect(values).toEqual(expected);
  });

  it('says which port is in use and what to do', async () => {
    const taken = createServer();
    const port = await new Promise<number>((resolve) =>
      taken.listen(0, '127.0.0.1', () => resolve((taken.address() as { port: number }).port)),
    );
    await expect(serveStore({ port })).rejects.toMatchObject({
      code: 'ERR_STORE_LISTEN',
      message: `serveStore: port ${port} is in use on 127.0.0.1. Pass port 0 to get a free one and read it from the result.`,
    });
    await new Promise((resolve) => taken.close(resolve));
  });

  it('refuses to listen beyond loopback without a secret', async () => {
    for (const host of ['0.0.0.0', '::']) {
      await expect(serveStore({ host })).rejects.toMatchObject({
        code: 'ERR_STORE_LISTEN',
        message: expect.stringContaining(`refuses to listen on ${host} without a secret`),
      });
    }
    await start({ host: '0.0.0.0', secret: 'a secret' });
    await start({ host: 'localhost' });
    await expect(serveStore({ secret: '' })).rejects.toMatchObject({ code: 'ERR_STORE_ARGUMENT' });
  });

  it('warns of a short secret beyond loopback, without telling it', async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error) => warnings.push(warning);
    process.on('warning', listener);
    try {
      await start({ host: '127.0.0.1', secret: 'zq' });
      await start({ host: '0.0.0.0', secret: 'sixteen letters.' });
      await start({ host: '0.0.0.0', secret: 'zq' });
      await setImmediate();
    } finally {
      process.off('warning', listener);
    }
    expect(warnings).toMatchObject([
      {
        code: 'RINGWISE_SHORT_SECRET',
        message: expect.stringMatching(/0\.0\.0\.0 has 2 characters, so .* 16/),
      },
    ]);
    expect(warnings[0]!.message).not.toContain('zq');
  });

  it('drops its clients and frees its port on close', async () => {
    const server = await serveStore();
    const client = await RawClient.connect(server);
    await server.close();
    await client.untilClosed();
    await start({ port: server.port });
  });

  it('serves others while a client does not read its replies', async () => {
    const server = await start();
    const client = await RawClient.connect(server);
    client.send(`00 cef7853c 01 ⟨2⟩ 2f61 ⟨4000000⟩ ${'00'.repeat(4_000_000)} 0d 01020304`);
    await client.take(4);
    client.socket.pause();
    const request = bytesOf('03 ⟨2⟩ 2f61');
    for (let count = 0; count < 40_000; count++) client.socket.write(request);
    const writable = await RawClient.connect(server);
    writable.send('00 cef7853c');
    expect((await writable.ask('0d 01020304', '01020304')).got).toBe('01020304');
    client.socket.destroy();
  });
});
