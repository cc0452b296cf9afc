// Where the ranks of a job, and its launchers, meet: one store. The launcher that keeps it is host 0 where hosts are
// numbered. With c10d it is the one that can listen on the address: no guess by names. Whoever cannot, connects.

import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { MemoryStore, type Store, type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import type { Rendezvous } from './env.ts';
import { anotherRun, noMeeting, noSecret, noSecretFile, storeFailed } from './errors.ts';
import type { MeetingOptions } from './run-options.ts';

export interface HostedRendezvous extends Rendezvous {
  readonly close: () => Promise<void>;
}

/** Hosts the store of a new job on this host only, under a secret of its own. Port 0 takes a free one. */
export async function hostRendezvous(
  masterAddr: string,
  port: number,
  runId = randomBytes(4).toString('hex'),
  secret = randomBytes(32).toString('hex'),
): Promise<HostedRendezvous> {
  const store = await serve(masterAddr, port, secret).catch((cause: unknown) => {
    throw storeFailed(masterAddr, port, cause);
  });
  return { runId, masterAddr, masterPort: store.port, secret, close: store.close };
}

export interface Meeting extends HostedRendezvous {
  /** What the launchers talk through. */
  readonly store: Store;
  readonly isHost: boolean;
  /** For messages. */
  readonly where: string;
}

const jobKey = 'launch/job';

/** Opens the store of a job, or joins it. Waits up to joinTimeoutMs for the launcher that keeps it. */
export async function openMeeting(
  options: MeetingOptions,
  runId: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<Meeting> {
  if (options.maxNodes === 1) {
    // Empty on purpose: for ranks that cannot prove a secret, such as torch's. The store then takes loopback only.
    const secret = env.RINGWISE_SECRET === '' ? '' : undefined;
    const hosted = await hostRendezvous(options.host, options.port, runId, secret);
    const store = new MemoryStore();
    const close = async () => {
      await store.close();
      await hosted.close();
    };
    return { ...hosted, store, isHost: true, where: whereIs(hosted), close };
  }
  return await meetOthers(options, runId ?? 'none', await sharedSecret(options.host, env));
}

async function meetOthers(options: MeetingOptions, runId: string, secret: string): Promise<Meeting> {
  const { host: masterAddr, port: masterPort, joinTimeoutMs } = options;
  const rendezvous = { runId, masterAddr, masterPort, secret };
  const where = whereIs(rendezvous);
  const server = await serveIfHost(options, secret).catch((cause: unknown) => {
    throw storeFailed(masterAddr, masterPort, cause);
  });
  try {
    const host = server ? reachable(server.host) : masterAddr;
    const timeoutMs = joinTimeoutMs;
    const store = await TcpStore.connect({ host, port: masterPort, timeoutMs, ...(secret && { secret }) });
    const owner = Buffer.from(await (server ? claim(store, runId) : store.get(jobKey))).toString();
    if (owner !== runId) throw anotherRun(where, runId, owner);
    const close = async () => {
      await store.close();
      await server?.close();
    };
    return { ...rendezvous, store, isHost: server !== null, where, close };
  } catch (cause) {
    await server?.close();
    throw (cause as Error).name === 'LaunchError' ? cause : noMeeting(where, cause);
  }
}

async function claim(store: Store, runId: string): Promise<Uint8Array> {
  await store.set(jobKey, runId);
  return Buffer.from(runId);
}

/** Null where another launcher keeps the store. */
async function serveIfHost(options: MeetingOptions, secret: string): Promise<StoreServer | null> {
  const { backend, nodeRank, host, port } = options;
  const isHost = options.isHost ?? (backend === 'static' ? nodeRank === 0 : null);
  if (isHost === false) return null;
  // A name may not be known yet where its host is still being started.
  const address = await lookup(host).then(
    (found) => found.address,
    () => null,
  );
  if (address === null && isHost === null) return null;
  if (address === null) return await serve(host, port, secret);
  // A host's own name often means loopback there, where no other host could connect.
  const isOwnName = isLoopback(address) && host !== 'localhost' && isIP(host) === 0;
  const isForAll = isOwnName ? host === hostname() : isHost === true && !isLoopback(address);
  const bind = isForAll ? (address.includes(':') ? '::' : '0.0.0.0') : address;
  try {
    return await serve(bind, port, secret);
  } catch (error) {
    const code = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code;
    if (isHost === null && (code === 'EADDRNOTAVAIL' || code === 'EADDRINUSE')) return null;
    throw error;
  }
}

function serve(host: string, port: number, secret: string): Promise<StoreServer> {
  return serveStore({ host, port, ...(secret && { secret }) });
}

/** RINGWISE_SECRET, or the content of RINGWISE_SECRET_FILE. Launchers on one host may do without. */
async function sharedSecret(host: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (env.RINGWISE_SECRET) return env.RINGWISE_SECRET;
  const file = env.RINGWISE_SECRET_FILE;
  if (file) {
    try {
      const secret = readFileSync(file, 'utf8').trim();
      if (secret !== '') return secret;
    } catch (cause) {
      throw noSecretFile(file, cause);
    }
    throw noSecretFile(file, undefined);
  }
  const address = await lookup(host).then(
    (found) => found.address,
    () => host,
  );
  if (isLoopback(address) && host !== hostname()) return '';
  throw noSecret(host);
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

/** Where this process reaches a server that listens on `bound`. */
function reachable(bound: string): string {
  return { '0.0.0.0': '127.0.0.1', '::': '::1' }[bound] ?? bound;
}

function whereIs({ masterAddr, masterPort }: Rendezvous): string {
  return `${masterAddr.includes(':') ? `[${masterAddr}]` : masterAddr}:${masterPort}`;
}
