// Identifies this host, and finds the address at which other hosts reach it.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { isLoopback, loopbackAddress } from '@ringwise/store';
import { CollectiveError, hostIdUnreadable } from '../errors.ts';

/**
 * Returns an id that two processes share exactly if they can use unix sockets and shared memory with each
 * other: they run on the same boot of the same machine and in the same network namespace (a container or a
 * test with its own namespace counts as another host). RINGWISE_HOST_ID replaces it, to separate processes
 * that share nothing but a network, such as the containers of a pod. Throws ERR_COLL_SYSTEM if this process has
 * no descriptor left.
 * @internal
 */
export function hostId(): string {
  const given = process.env.RINGWISE_HOST_ID;
  if (given) return given;
  try {
    return `${bootId()}/${statSync('/proc/self/ns/net').ino}`;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    // With another id than before, this rank would count the ranks of its host as ranks of other hosts.
    if (code === 'EMFILE' || code === 'ENFILE')
      throw new CollectiveError(hostIdUnreadable(message), null, { cause });
    return nameWithoutProc(hostname(), networkInterfaces());
  }
}

/**
 * Returns the id of a host without /proc. Computers often share a name, such as MacBook-Pro.local, so the hardware
 * addresses of the network interfaces are part of it.
 */
export function nameWithoutProc(name: string, interfaces: ReturnType<typeof networkInterfaces>): string {
  const addresses = Object.values(interfaces).flatMap((each) => each ?? []);
  const macs = addresses.filter(({ internal }) => !internal).map(({ mac }) => mac);
  return [name, ...new Set(macs.sort())].join(' ');
}

/** Returns an id that two processes share if their monotonic clocks agree. */
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
 * Returns the address at which other hosts reach this one: that of the interface that routes to `target`. If
 * `target` resolves to loopback or does not resolve, returns the first non-loopback address: only other hosts
 * may know the name, and on `target` itself it often resolves to loopback, such as 127.0.1.1.
 */
export async function addressTowards(target: string): Promise<string> {
  const address = await sourceTowards(target).catch(loopbackAddress);
  return isLoopback(address) ? (firstOutward() ?? address) : address;
}

/** Returns whether a name or address is loopback, without a DNS lookup. */
export function isLoopbackName(host: string): boolean {
  return host === 'localhost' || isLoopback(host);
}

/**
 * Returns the local address of the route to `target`. Connecting a UDP socket picks a route and sends
 * nothing.
 */
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
  // An IPv6 address with a scope id is valid on its own link only.
  const outward = all.filter(
    ({ internal, family, ...rest }) => !internal && !(family === 'IPv6' && rest.scopeid),
  );
  return (outward.find(({ family }) => family === 'IPv4') ?? outward[0])?.address;
}
