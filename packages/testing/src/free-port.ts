import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Resolves with a free port of `host`, for programs that must agree on a port before any of them listens. It is below
 * the ports that Linux and macOS give to connections, so another test cannot take it meanwhile by connecting.
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
