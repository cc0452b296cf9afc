// Checks of options that several stores have.

import { badArgument, badOptions } from './errors.ts';
import { unknownOption } from './option-names.ts';

/** The stores' options by their names in torch's stores and Node's sockets. */
const renamed = { host_name: 'host', hostname: 'host', address: 'host', timeout: 'timeoutMs' };

/** Options of the calls that wait. */
export const waitOptionNames = ['timeoutMs', 'signal'] as const;

/** Throws ERR_STORE_ARGUMENT if `options` has a member that `verb` does not know. */
export function checkNames(verb: string, options: unknown, known: readonly string[]): void {
  const problem = unknownOption(options, known, renamed);
  if (problem !== null) throw badOptions(verb, problem);
}

/** Returns `timeoutMs`, or throws ERR_STORE_ARGUMENT. Infinity is allowed. */
export function checkTimeout(verb: string, timeoutMs: number): number {
  if (typeof timeoutMs === 'number' && timeoutMs >= 0) return timeoutMs;
  throw badArgument(verb, 'timeoutMs to be a number of milliseconds >= 0', timeoutMs);
}

export function checkMap(verb: string, entries: unknown): void {
  if (typeof entries === 'object' && entries !== null && 'size' in entries && Symbol.iterator in entries)
    return;
  throw badArgument(verb, 'a Map of keys and values', entries);
}

export function checkHost(verb: string, host: unknown): void {
  if (typeof host !== 'string' || host === '') throw badArgument(verb, 'host to be a name or address', host);
}

/**
 * Throws ERR_STORE_ARGUMENT unless `port` is valid. `lowest` is 0 if port 0 may be used to get a free port.
 */
export function checkPort(verb: string, port: unknown, lowest: 0 | 1): void {
  if (typeof port === 'number' && Number.isInteger(port) && port >= lowest && port <= 65_535) return;
  throw badArgument(verb, `port to be ${lowest} to 65535`, port);
}
