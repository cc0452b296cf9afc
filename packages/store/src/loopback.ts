// The loopback address, by which the processes of one machine reach each other.
import { networkInterfaces } from 'node:os';

/** Returns 127.0.0.1, or ::1 if the loopback interface has only that. */
export function loopbackAddress(): '127.0.0.1' | '::1' {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const own = new Set(all.filter(({ internal }) => internal).map(({ address }) => address));
  return own.has('::1') && !own.has('127.0.0.1') ? '::1' : '127.0.0.1';
}

/**
 * Returns whether a numeric address is a loopback address: 127.0.0.0/8, also as ::ffff:127.…, or ::1. Resolve a host
 * name first.
 */
export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}
