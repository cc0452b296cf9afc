// Tests a client whose server is late, silent or dead, sends garbage, or speaks another protocol. The servers that
// misbehave are plain sockets that follow a script.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serveStore, TcpStore } from '../../src/index.ts';
import { bytesOf } from '../support/raw-client.ts';

const cleanups: (() => unknown)[] = [];
const warnings: Error[] = [];
const keepWarning = (warning: Error) => warnings.push(warning);
beforeEach(() => process.on('warning', keepWarning));
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
  process.off('warning', keepWarning);
  expect(warnings.splice(0)).toEqual([]);
});

/** Listens on a free port and calls `serve` with each connection. Resolves with the address. */
async function script(serve: (socket: Socket) => void): Promise<{ host: string; port: number }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    serve(socket);
  });
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

const validation = bytesOf('00 cef7853c 0d ffffffff').length;
const checkOfOneKey = bytesOf('05 ⟨1⟩ ⟨2⟩ 2f6b').length;
const waitForOneKey = bytesOf('06 ⟨1⟩ ⟨2⟩ 2f6b').length;

/** Answers the validation and the start-up counter, then passes each chunk of the connection to `then`. */
function validate(socket: Socket, then: (request: Buffer, reply: (text: string) => void) => void): void {
  let isValidated = false;
  const reply = (text: string) => socket.write(bytesOf(text));
  socket.on('data', (chunk: Buffer) => {
    let rest = chunk;
    if (!isValidated) {
      isValidated = true;
      reply('ffffffff');
      rest = chunk.subarray(validation);
    }
    if (rest[0] === 4) {
      reply('⟨1⟩');
      rest = rest.subarray(rest.length);
    }
    if (rest.length > 0) then(rest, reply);
  });
}

async function connected(
  { host, port }: { host: string; port: number },
  timeoutMs = 60_000,
): Promise<TcpStore> {
  const store = await TcpStore.connect({ host, port, timeoutMs });
  cleanups.push(() => store.close());
  return store;
}

describe('connect', () => {
  it('retries until the server is there', async () => {
    const reserved = await serveStore();
    await reserved.close();
    const connecting = connected(reserved);
    const server = await serveStore({ port: reserved.port });
    cleanups.push(server.close);
    expect(await (await connecting).add('n', 1)).toBe(1);
  });

  it('says at its deadline where it tried and why it failed', async () => {
    const gone = await serveStore();
    await gone.close();
    await expect(TcpStore.connect({ ...gone, timeoutMs: 80 })).rejects.toMatchObject({
      code: 'ERR_STORE_CONNECT',
      message: expect.stringMatching(
        new RegExp(
          `no store answered within 80 ms; \\d+ attempts, the last: .*ECONNREFUSED.*tcp 127.0.0.1:${gone.port}`,
        ),
      ),
    });
  });

  // In a network namespace of its own the loopback interface is down.
  const apart = [
    'unshare',
    '--net',
    '--map-root-user',
    process.execPath,
    '--input-type=module',
    '-e',
  ] as const;
  const canBeApart = spawnSync(apart[0], [...apart.slice(1), '']).status === 0;
  it.skipIf(!canBeApart)('says at once that no interface leads to loopback', () => {
    const program = `import { TcpStore } from '${import.meta.resolve('@ringwise/store')}';
      const connecting = TcpStore.connect({ host: '127.0.0.1', port: 9, timeoutMs: 600_000 });
      await connecting.catch(({ code, message }) => console.log(code, message));`;
    const { stdout } = spawnSync(apart[0], [...apart.slice(1), program], {
      encoding: 'utf8',
      timeout: 120_000,
    });
    expect(stdout).toMatch(
      /^ERR_STORE_CONNECT connect: this host cannot reach its own loopback address; .* ip link set lo up\n$/,
    );
  });

  it('says so when the server accepts and never answers', async () => {
    const silent = await script(() => {});
    await expect(TcpStore.connect({ ...silent, timeoutMs: 60 })).rejects.toMatchObject({
      code: 'ERR_STORE_CONNECT',
    });
  });

  it('retries while a proxy hangs up because its target is still starting', async () => {
    const server = await serveStore();
    cleanups.push(server.close);
    let hangUps = 0;
    const proxy = await script((socket) => {
      if (hangUps < 9) {
        hangUps++;
        socket.once('data', () => socket.destroy());
        return;
      }
      const onward = connect(server);
      onward.on('error', () => socket.destroy());
      socket.pipe(onward).pipe(socket);
    });
    expect(await (await connected(proxy)).add('n', 1)).toBe(1);
    expect(hangUps).toBe(9);
  });

  it('says at its deadline that a server which always hangs up is no store', async () => {
    const rude = await script((socket) => socket.once('data', () => socket.destroy()));
    await expect(connected(rude, 8_000)).rejects.toMatchObject({ code: 'ERR_STORE_PROTOCOL' });
  });

  it('refuses a server that speaks another protocol', async () => {
    const other = await script((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await expect(connected(other)).rejects.toMatchObject({ code: 'ERR_STORE_PROTOCOL' });
  });

  it('ends with the reason of its signal', async () => {
    const silent = await script(() => {});
    const stop = new AbortController();
    const connecting = TcpStore.connect({ ...silent, signal: stop.signal });
    const reason = new Error('stop');
    stop.abort(reason);
    await expect(connecting).rejects.toBe(reason);
    await expect(TcpStore.connect({ ...silent, signal: stop.signal })).rejects.toBe(reason);
  });

  it('refuses bad addresses', async () => {
    for (const bad of [
      { host: '', port: 1 },
      { host: 'h', port: 0 },
      { host: 'h', port: 65_536 },
      { host: 'h', port: 1.5 },
    ]) {
      await expect(TcpStore.connect(bad)).rejects.toMatchObject({ code: 'ERR_STORE_ARGUMENT' });
    }
  });
});

describe('a wait over TCP', () => {
  it('leaves its last question only the rest of its time', async () => {
    const address = await script((socket) =>
      validate(socket, (request, reply) => {
        if (request[0] === 5) setTimeout(() => reply('00'), 1_500); // and never answers the get
      }),
    );
    const store = await connected(address);
    await expect(store.get('k', { timeoutMs: 2_400 })).rejects.toMatchObject({
      code: 'ERR_STORE_TIMEOUT',
      message: expect.stringContaining('did not answer within 1000 ms'),
      keys: ['k'],
    });
  });

  it('ends as any other at its deadline when the server answers no further connection', async () => {
    let connections = 0;
    const address = await script((socket) => {
      if (++connections > 1) return;
      validate(socket, (request, reply) => {
        if (request[0] === 5) reply('01');
      });
    });
    const store = await connected(address);
    await expect(store.get('k', { timeoutMs: 10 })).rejects.toMatchObject({
      code: 'ERR_STORE_TIMEOUT',
      message: expect.stringContaining('did not answer within 1000 ms'),
      keys: ['k'],
      cause: { code: 'ERR_STORE_CONNECT' },
    });
    expect(connections).toBe(2);
  });

  it('discards a reply that was under way when it was cancelled, and goes on with the connection', async () => {
    const waits: Socket[] = [];
    let cancels = 0;
    let isConfirmed = false;
    const address = await script((socket) =>
      validate(socket, (request, reply) => {
        if (request[0] === 5) reply('01');
        if (request[0] === 6) {
          expect(request.length).toBe(waitForOneKey);
          waits.push(socket);
          if (waits.length === 2) reply('00');
        }
        // The key arrives at the same time: first the late reply 0, then the confirmation in a packet of its own.
        if (request[0] === 12) {
          cancels++;
          reply('00');
          setImmediate(() => {
            reply('01');
            isConfirmed = true;
          });
        }
        if (request[0] === 3) reply('⟨2⟩ 6869');
      }),
    );
    const store = await connected(address);
    const stop = new AbortController();
    const first = store.get('k', { signal: stop.signal });
    await expect.poll(() => waits.length).toBe(1);
    stop.abort(new Error('stop'));
    await expect(first).rejects.toThrow('stop');
    await expect.poll(() => isConfirmed).toBe(true);
    expect(cancels).toBe(1);
    // Before the confirmation arrives, a wait takes a new connection. A later request is answered after it.
    await store.check(['k']);
    expect(Buffer.from(await store.get('k')).toString()).toBe('hi');
    expect(waits.length).toBe(2);
    expect(waits[1]).toBe(waits[0]);
  });

  it('opens few connections for many waits, and answers them all', async () => {
    const server = await serveStore();
    cleanups.push(server.close);
    let connections = 0;
    const relay = await script((socket) => {
      connections++;
      const onward = connect(server);
      onward.on('error', () => socket.destroy());
      socket.pipe(onward).pipe(socket);
    });
    const store = await connected(relay);
    const values = Array.from({ length: 100 }, (_, index) => store.get(`k${index}`));
    const missing = store.wait(['never'], { timeoutMs: 200 });
    await expect(missing).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT', keys: ['never'] });
    await store.multiSet(new Map(values.map((_, index) => [`k${index}`, String(index)])));
    const texts = (await Promise.all(values)).map((value) => Number(Buffer.from(value)));
    expect(texts).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(connections).toBeLessThanOrEqual(9);
  });

  it('ends long before the deadline, with what happened, when the server is killed', async () => {
    const address = await storeProcess();
    const store = await connected(address);
    await store.set('k', 'v');
    const calls = [store.get('a'), store.wait(['b']), store.multiGet(['k', 'c'])];
    const outcomes = Promise.allSettled(calls);
    // All three calls wait on the server now, and the fourth uses the same connections.
    await expect(store.wait(['d'], { timeoutMs: 1 })).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' });
    address.child.kill('SIGKILL');
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'ERR_STORE_LOST' } });
    }
    await expect(store.set('k', 'v')).rejects.toMatchObject({ code: 'ERR_STORE_LOST' });
  });

  it('names its keys when a stopped server cannot tell which are missing', async () => {
    const address = await storeProcess();
    const store = await connected(address);
    await expect(store.wait(['d'], { timeoutMs: 1 })).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' });
    address.child.kill('SIGSTOP');
    await expect(store.wait(['a', 'b'], { timeoutMs: 10 })).rejects.toMatchObject({
      code: 'ERR_STORE_TIMEOUT',
      message: expect.stringContaining('did not answer'),
    });
    address.child.kill('SIGCONT');
    await store.set('a', '1');
  });
});

it('ends when a reply breaks the protocol', async () => {
  const replies: Record<string, string> = {
    'a reply nobody asked for': '01 01',
    'a reply that check does not have': '07',
  };
  for (const [name, bytes] of Object.entries(replies)) {
    const address = await script((socket) =>
      validate(socket, (request, reply) => {
        expect(request.length).toBe(checkOfOneKey);
        reply(bytes);
      }),
    );
    const store = await connected(address);
    await store.check(['k']).catch(() => {});
    await expect(store.check(['k']), name).rejects.toMatchObject({ code: 'ERR_STORE_PROTOCOL' });
  }
});

it('does not keep a process alive while it is idle', async () => {
  const server = await serveStore();
  cleanups.push(server.close);
  const code = `import { TcpStore } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
    const store = await TcpStore.connect({ host: '127.0.0.1', port: ${server.port} });
    await store.set('k', 'v');
    await store.wait(['late'], { timeoutMs: 1 }).catch(() => {});`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' });
  cleanups.push(() => child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([0, null]);
});

it('does not keep a process alive after calls that a stopped server did not answer', async () => {
  const { child: server, ...address } = await storeProcess();
  const code = `import { TcpStore } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
    const store = await TcpStore.connect(${JSON.stringify(address)});
    await store.wait(['late'], { timeoutMs: 1 }).catch(() => {}); // leaves a connection for the next wait
    process.kill(${server.pid}, 'SIGSTOP');
    const signal = AbortSignal.timeout(1);
    await store.wait(['late'], { signal }).catch(() => {});`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' });
  cleanups.push(() => child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([0, null]);
});

/** Starts a store server from the built package in a process of its own. */
async function storeProcess(): Promise<{ host: string; port: number; child: ChildProcess }> {
  const code = `import { serveStore } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
    const server = await serveStore();
    process.send(server.port);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  cleanups.push(() => child.kill('SIGKILL'));
  const [port] = (await once(child, 'message')) as [number];
  return { host: '127.0.0.1', port, child };
}
