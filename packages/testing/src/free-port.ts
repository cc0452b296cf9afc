import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Resolves with a port of `host` that is free, for programs that must agree on one before any of them listens. The
 * port lies below those that Linux and macOS give to connections, so no other test takes it meanwhile by connecting.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(20_000, 32_768);
    const server = createServer().listen(port, host);
    try {
      await once(server, 'listening');
    } catch {
      continue; // taken
    }
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error(`freePort: 100 ports of ${host} between 20000 and 32767 are taken`);
}
