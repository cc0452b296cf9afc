// Who is on this host, and on which address other hosts reach it.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { isLoopback, loopbackAddress } from '@ringwise/store';

/**
 * Equal for two processes exactly if they can meet through unix sockets and shared memory: same boot of the same
 * machine, same network namespace (a container or a test's namespace of its own counts as another host).
 * RINGWISE_HOST_ID in its place keeps apart those that share a network but no more, such as containers of one pod.
 */
export function hostId(): string {
  const given = process.env.RINGWISE_HOST_ID;
  if (given) return given;
  try {
    return `${bootId()}/${statSync('/proc/self/ns/net').ino}`;
  } catch {
    return hostname();
  }
}

/** Equal for two processes if their monotonic clocks show the same. */
export function clockId(): string {
  try {
    return bootId();
  } catch {
    return hostname();
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/**
 * The address at which other hosts reach this one: that of the interface that routes to `target`. Where the name says
 * nothing, it is the first interface that leads out: a name may be known to other hosts only, and on `target` itself
 * it often means loopback, such as 127.0.1.1.
 */
export async function addressTowards(target: string): Promise<string> {
  const address = await sourceTowards(target).catch(loopbackAddress);
  return isLoopback(address) ? (firstOutward() ?? address) : address;
}

/** Without a look-up: what other hosts could only take for themselves. */
export function isLoopbackName(host: string): boolean {
  return host === 'localhost' || isLoopback(host);
}

/** Sends nothing: connecting UDP only picks a route. */
async function sourceTowards(target: string): Promise<string> {
  const socket = createSocket(isIP(target) === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(9, target);
    await once(socket, 'connect');
    return socket.address().address;
  } finally {
    socket.close();
  }
}

function firstOutward(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  // An IPv6 address with a scope is known on its own link only.
  const outward = all.filter(
    ({ internal, family, ...rest }) => !internal && !(family === 'IPv6' && rest.scopeid),
  );
  return (outward.find(({ family }) => family === 'IPv4') ?? outward[0])?.address;
}
