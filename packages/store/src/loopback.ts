// The address at which processes of one machine reach each other.
import { networkInterfaces } from 'node:os';

/** Returns 127.0.0.1, or ::1 where the loopback interface has an IPv6 address only. */
export function loopbackAddress(): '127.0.0.1' | '::1' {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const own = new Set(all.filter(({ internal }) => internal).map(({ address }) => address));
  return own.has('::1') && !own.has('127.0.0.1') ? '::1' : '127.0.0.1';
}

/** Tells whether a numeric address is one of the loopback interface: 127.0.0.0/8 or ::1. */
export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}
