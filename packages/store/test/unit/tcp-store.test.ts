import { describe, it } from 'vitest';
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
