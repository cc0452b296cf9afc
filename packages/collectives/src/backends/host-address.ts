// Who is on this host, and on which address other hosts reach it.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

/**
 * Equal for two processes exactly if they can meet through unix sockets and shared memory: same boot of the same
 * machine, same network namespace (a container or a test's namespace of its own counts as another host).
 */
export function hostId(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${statSync('/proc/self/ns/net').ino}`;
  } catch {
    return hostname();
  }
}

/** The local address of the interface that routes to `target`. Sends nothing: connecting UDP only picks a route. */
export async function addressTowards(target: string): Promise<string> {
  const socket = createSocket(isIP(target) === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(9, target);
    await once(socket, 'connect');
    return socket.address().address;
  } finally {
    socket.close();
  }
}
