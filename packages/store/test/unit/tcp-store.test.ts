import { describe, expect, it } from 'vitest';
import { serveStore, TcpStore } from '../../src/index.ts';
import { storeContract } from '../../src/testing.ts';

for (const secret of [undefined, 'correct horse battery staple']) {
  const make = async () => {
    const server = await serveStore({ ...(secret && { secret }) });
    const { host, port } = server;
    return {
      connect: () => TcpStore.connect({ host, port, ...(secret && { secret }) }),
      close: server.close,
    };
  };
  storeContract(secret ? 'TcpStore with a secret' : 'TcpStore', make, { describe, it });
}

describe('a call that the server refuses', () => {
  it.each([
    ['add', 'adds to a value that is no 64-bit decimal number', (store: TcpStore) => store.add('word', 1)],
    [
      'append',
      'makes a value larger than the server allows',
      (store: TcpStore) => store.append('word', new Uint8Array(8 * 2 ** 20)),
    ],
  ] as const)('says so, although the server can only close the connection: %s', async (verb, why, call) => {
    const server = await serveStore();
    const store = await TcpStore.connect(server);
    await store.set('word', 'five');
    await expect(call(store)).rejects.toMatchObject({
      code: 'ERR_STORE_LOST',
      message: expect.stringContaining(
        `closed the connection during ${verb}() (tcp ${server.host}:${server.port}). A server does so if the call ${why}.`,
      ),
    });
    await store.close();
    await server.close();
  });

  it('is another loss if it may not be the reason', async () => {
    const server = await serveStore();
    const store = await TcpStore.connect(server);
    const waiting = expect(store.get('later')).rejects.toThrow(
      'The process that hosts the store has probably ended',
    );
    await server.close();
    await waiting;
    await store.close();
  });
});
