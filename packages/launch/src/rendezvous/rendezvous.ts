// Where the ranks of a job, and its launchers, meet: one store. The launcher that keeps it is host 0 where hosts are
// numbered. With c10d it is the one that can listen on the address: no guess by names. Whoever cannot, connects.

import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import {
  isLoopback,
  loopbackAddress,
  MemoryStore,
  type Store,
  type StoreServer,
  serveStore,
  TcpStore,
} from '@ringwise/store';
import type { Rendezvous } from '../agent/env.ts';
import type { MeetingOptions } from '../cli/run-options.ts';
import { anotherRun, noMeeting, noSecret, noSecretFile, storeFailed } from '../errors.ts';

export interface HostedRendezvous extends Rendezvous {
  readonly close: () => Promise<void>;
}

/** What a job's store is hosted with; what is left out is random. */
export interface HostSettings {
  readonly runId?: string | undefined;
  /** Empty: the store asks for none. */
  readonly secret?: string | undefined;
  readonly onPlainClient?: OnPlainClient | undefined;
}

/** Called with the address of a client that was turned away because it offered no proof of the secret. */
export type OnPlainClient = (address: string) => void;

/** Hosts the store of a new job on this host only. Port 0 takes a free one. */
export async function hostRendezvous(
  masterAddr: string,
  port: number,
  settings: HostSettings = {},
): Promise<HostedRendezvous> {
  const { runId = randomBytes(4).toString('hex'), secret = randomBytes(32).toString('hex') } = settings;
  const store = await serve(masterAddr, port, secret, settings.onPlainClient).catch((cause: unknown) => {
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
  /** What the ranks of a round get. No rank of an earlier round is left when it is called. */
  readonly forRound: (round: number) => Promise<Rendezvous>;
}

/** Who meets. */
export interface MeetingFacts {
  /** Undefined: make one up. */
  readonly runId: string | undefined;
  /** The ranks are Python: torch's client cannot prove a secret. */
  readonly isPython: boolean;
  readonly onPlainClient: OnPlainClient;
}

const jobKey = 'launch/job';

/** Opens the store of a job, or joins it. Waits up to joinTimeoutMs for the launcher that keeps it. */
export async function openMeeting(
  options: MeetingOptions,
  facts: MeetingFacts,
  env: NodeJS.ProcessEnv,
): Promise<Meeting> {
  if (options.maxNodes === 1) return await meetAlone(options, facts, env);
  return await meetOthers(options, facts, await sharedSecret(options.host, env));
}

/** The only launcher. Each round has a store of its own: torch's keys do not tell rounds apart. */
async function meetAlone(
  { host, port }: MeetingOptions,
  { runId, isPython, onPlainClient }: MeetingFacts,
  env: NodeJS.ProcessEnv,
): Promise<Meeting> {
  // Empty on purpose: for ranks that cannot prove a secret. The store then takes loopback only.
  const isOpen = isPython || env.RINGWISE_SECRET === '';
  const masterAddr = isOpen && !isLoopback(await addressOf(host)) ? loopbackAddress() : host;
  const secret = isOpen ? '' : undefined;
  const first = await hostRendezvous(masterAddr, port, { runId, secret, onPlainClient });
  let hosted = first;
  const store = new MemoryStore();
  return {
    ...first,
    store,
    isHost: true,
    where: whereIs(first),
    forRound: async (round) => {
      if (round === 0) return first;
      await hosted.close();
      hosted = await hostRendezvous(masterAddr, port, { runId: first.runId, secret, onPlainClient });
      return hosted;
    },
    close: async () => {
      await store.close();
      await hosted.close();
    },
  };
}

async function meetOthers(options: MeetingOptions, facts: MeetingFacts, secret: string): Promise<Meeting> {
  const { host: masterAddr, port: masterPort, joinTimeoutMs } = options;
  const { runId = 'none', onPlainClient } = facts;
  const rendezvous = { runId, masterAddr, masterPort, secret };
  const where = whereIs(rendezvous);
  const server = await serveIfHost(options, secret, onPlainClient).catch((cause: unknown) => {
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
    const forRound = async () => rendezvous;
    return { ...rendezvous, store, isHost: server !== null, where, forRound, close };
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
async function serveIfHost(
  options: MeetingOptions,
  secret: string,
  onPlainClient: OnPlainClient,
): Promise<StoreServer | null> {
  const { backend, nodeRank, host, port } = options;
  const isHost = options.isHost ?? (backend === 'static' ? nodeRank === 0 : null);
  if (isHost === false) return null;
  // A name may not be known yet where its host is still being started.
  const address = await lookup(host).then(
    (found) => found.address,
    () => null,
  );
  if (address === null && isHost === null) return null;
  if (address === null) return await serve(host, port, secret, onPlainClient);
  // A host's own name often means loopback there, where no other host could connect.
  const isOwnName = isLoopback(address) && host !== 'localhost' && isIP(host) === 0;
  const isForAll = isOwnName ? host === hostname() : isHost === true && !isLoopback(address);
  const bind = isForAll ? (address.includes(':') ? '::' : '0.0.0.0') : address;
  try {
    return await serve(bind, port, secret, onPlainClient);
  } catch (error) {
    const code = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code;
    if (isHost === null && (code === 'EADDRNOTAVAIL' || code === 'EADDRINUSE')) return null;
    throw error;
  }
}

function serve(
  host: string,
  port: number,
  secret: string,
  onPlainClient: OnPlainClient | undefined,
): Promise<StoreServer> {
  return serveStore({ host, port, ...(secret && { secret }), ...(onPlainClient && { onPlainClient }) });
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
  if (isLoopback(await addressOf(host)) && host !== hostname()) return '';
  throw noSecret(host);
}

/** The name itself where nothing resolves it. */
async function addressOf(host: string): Promise<string> {
  return await lookup(host).then(
    ({ address }) => address,
    () => host,
  );
}

/** Where this process reaches a server that listens on `bound`. */
function reachable(bound: string): string {
  return { '0.0.0.0': '127.0.0.1', '::': '::1' }[bound] ?? bound;
}

function whereIs({ masterAddr, masterPort }: Rendezvous): string {
  return `${masterAddr.includes(':') ? `[${masterAddr}]` : masterAddr}:${masterPort}`;
}
