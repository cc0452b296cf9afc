// The store through which the ranks of a job, and its launchers, communicate. If hosts have an index, the launcher of
// host 0 serves it. With c10d, the launcher that can listen on the address serves it, which needs no guess from host
// names; the other launchers connect to it.

import { randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import {
  getIfPresent,
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
import {
  anotherRun,
  noMeeting,
  noSecret,
  noSecretFile,
  otherRules,
  type StoreSettings,
  storeFailed,
} from '../errors.ts';
import type { ElasticLimits } from './elastic/elastic-coordinator.ts';
import { jobKey, rulesKey } from './job-keys.ts';

export interface HostedRendezvous extends Rendezvous {
  readonly close: () => Promise<void>;
}

/** Settings of a job's store. Absent ones are generated at random. */
export interface HostSettings {
  readonly runId?: string | undefined;
  /** Empty if the store requires no secret. */
  readonly secret?: string | undefined;
  readonly onPlainClient?: OnPlainClient | undefined;
  /** Settings to name in the error if the store cannot listen; by default those of one numbered host. */
  readonly setBy?: StoreSettings | undefined;
}

/** Called with the address of a client that was rejected because it did not prove the secret. */
export type OnPlainClient = (address: string) => void;

/** Serves the store of a new job that has only this launcher. Port 0 picks a free port. */
export async function hostRendezvous(
  masterAddr: string,
  port: number,
  settings: HostSettings = {},
): Promise<HostedRendezvous> {
  const { runId = randomBytes(4).toString('hex'), secret = randomBytes(32).toString('hex') } = settings;
  const store = await serve(masterAddr, port, secret, settings.onPlainClient).catch((cause: unknown) => {
    throw storeFailed(masterAddr, port, cause, settings.setBy);
  });
  return { runId, masterAddr, masterPort: store.port, secret, close: store.close };
}

export interface Meeting extends HostedRendezvous {
  /** Store for messages between the launchers. */
  readonly store: Store;
  readonly isHost: boolean;
  /** Address of the store, to show to users. */
  readonly where: string;
  /**
   * Returns the rendezvous for the ranks of a round. Call it only when no rank of an earlier round is left.
   */
  readonly forRound: (round: number) => Promise<Rendezvous>;
  /** Returns a connection to the store of the ranks of round 0, which close() closes. */
  readonly rankStore: () => Promise<Store>;
}

/** Facts about the job whose store is opened or joined. */
export interface MeetingFacts {
  /** Undefined to generate one. */
  readonly runId: string | undefined;
  /** Whether the ranks are Python, whose torch client cannot prove a secret. */
  readonly isPython: boolean;
  /** Null if a lost rank stops all. */
  readonly elastic: ElasticLimits | null;
  readonly onPlainClient: OnPlainClient;
}

/** Opens the store of a job, or joins it. Waits up to joinTimeoutMs for the launcher that keeps it. */
export async function openMeeting(
  options: MeetingOptions,
  facts: MeetingFacts,
  env: NodeJS.ProcessEnv,
): Promise<Meeting> {
  if (options.maxNodes === 1) return await meetAlone(options, facts, env);
  return await meetOthers(options, facts, await sharedSecret(options.host, env));
}

/**
 * Opens the rendezvous of a single launcher. Each round has a new store, because torch uses the same keys in
 * all rounds.
 */
async function meetAlone(
  meeting: MeetingOptions,
  { runId, isPython, onPlainClient }: MeetingFacts,
  env: NodeJS.ProcessEnv,
): Promise<Meeting> {
  const { host, port } = meeting;
  const { isOpen, masterAddr } = await aloneAt(host, isPython, env);
  const secret = isOpen ? '' : undefined;
  const settings = { secret, onPlainClient, setBy: meeting };
  const first = await hostRendezvous(masterAddr, port, { ...settings, runId });
  let hosted = first;
  const store = new MemoryStore();
  let client: Promise<Store> | null = null;
  const connect = () => {
    const own = { host: reachable(masterAddr), port: first.masterPort };
    return TcpStore.connect({ ...own, ...(first.secret && { secret: first.secret }) });
  };
  return {
    ...first,
    store,
    isHost: true,
    where: whereIs(first),
    forRound: async (round) => {
      if (round === 0) return first;
      await hosted.close();
      hosted = await hostRendezvous(masterAddr, port, { ...settings, runId: first.runId });
      return hosted;
    },
    rankStore: () => {
      client ??= connect();
      return client;
    },
    close: async () => {
      await store.close();
      await client?.then((each) => each.close()).catch(() => {});
      await hosted.close();
    },
  };
}

/**
 * Returns the address of the store of a single launcher, and whether the store requires no secret: an empty secret is
 * for ranks that cannot prove one. Such a store accepts only loopback connections.
 */
async function aloneAt(
  host: string,
  isPython: boolean,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly isOpen: boolean; readonly masterAddr: string }> {
  const isOpen = isPython || env.RINGWISE_SECRET === '';
  return { isOpen, masterAddr: isOpen && !isLoopback(await addressOf(host)) ? loopbackAddress() : host };
}

/**
 * Returns the rendezvous that openMeeting() would make, without opening anything. In place of the secret and a random
 * run id it has words in parentheses. Throws as openMeeting() does if a secret is missing.
 */
export async function describeMeeting(
  { maxNodes, host, port }: MeetingOptions,
  { runId, isPython }: Pick<MeetingFacts, 'runId' | 'isPython'>,
  env: NodeJS.ProcessEnv,
): Promise<Rendezvous> {
  if (maxNodes > 1) {
    const needsSecret = (await sharedSecret(host, env)) !== '';
    return {
      runId: runId ?? 'none',
      masterAddr: host,
      masterPort: port,
      secret: needsSecret ? '(secret)' : '',
    };
  }
  const { isOpen, masterAddr } = await aloneAt(host, isPython, env);
  return { runId: runId ?? '(random)', masterAddr, masterPort: port, secret: isOpen ? '' : '(secret)' };
}

async function meetOthers(options: MeetingOptions, facts: MeetingFacts, secret: string): Promise<Meeting> {
  const { host: masterAddr, port: masterPort, joinTimeoutMs } = options;
  const { runId = 'none', onPlainClient } = facts;
  const rendezvous = { runId, masterAddr, masterPort, secret };
  const where = whereIs(rendezvous);
  const server = await serveIfHost(options, secret, onPlainClient).catch((cause: unknown) => {
    throw storeFailed(masterAddr, masterPort, cause, options);
  });
  try {
    const host = server ? reachable(server.host) : masterAddr;
    const timeoutMs = joinTimeoutMs;
    const store = await TcpStore.connect({ host, port: masterPort, timeoutMs, ...(secret && { secret }) });
    const rules = rulesOf(options, facts.elastic);
    if (server) await claim(store, runId, rules);
    else await compare(store, where, runId, rules);
    const close = async () => {
      await store.close();
      await server?.close();
    };
    const forRound = async () => rendezvous;
    const rankStore = async () => store;
    return { ...rendezvous, store, isHost: server !== null, where, forRound, rankStore, close };
  } catch (cause) {
    await server?.close();
    throw (cause as Error).name === 'LaunchError' ? cause : noMeeting(where, cause);
  }
}

/** Stores the run id and the rules, so that launchers that join can compare them with theirs. */
async function claim(store: Store, runId: string, rules: string): Promise<void> {
  await store.set(rulesKey, rules);
  await store.set(jobKey, runId);
}

/** Waits for the run id of the job, and compares it and the rules with those of this launcher. */
async function compare(store: Store, where: string, runId: string, rules: string): Promise<void> {
  const owner = Buffer.from(await store.get(jobKey)).toString();
  if (owner !== runId) throw anotherRun(where, runId, owner);
  // A store to which an elastic job has moved has no rules: each launcher decides for its own ranks there.
  const expected = await getIfPresent(store, rulesKey);
  const text = expected && Buffer.from(expected).toString();
  if (text !== null && text !== rules) throw otherRules(where, text, rules);
}

/** Returns the flags that must be the same on all hosts: the launcher that keeps the store decides by its own. */
function rulesOf({ minNodes, maxNodes }: MeetingOptions, elastic: ElasticLimits | null): string {
  const nnodes = minNodes === maxNodes ? `${minNodes}` : `${minNodes}:${maxNodes}`;
  if (elastic === null) return `--nnodes ${nnodes} without --elastic`;
  const { minRanks, maxRanks } = elastic;
  return `--nnodes ${nnodes} --elastic ${Number.isFinite(maxRanks) ? `${minRanks}:${maxRanks}` : minRanks}`;
}

/** Serves the store if this launcher should; returns null if another one does. */
async function serveIfHost(
  options: MeetingOptions,
  secret: string,
  onPlainClient: OnPlainClient,
): Promise<StoreServer | null> {
  const { backend, nodeRank, host, port } = options;
  const isHost = options.isHost ?? (backend === 'static' ? nodeRank === 0 : null);
  if (isHost === false) return null;
  // The name may not be resolvable yet if its host is still starting.
  const address = await lookup(host).then(
    (found) => found.address,
    () => null,
  );
  if (address === null && isHost === null) return null;
  if (address === null) return await serve(host, port, secret, onPlainClient);
  // A host's own name often resolves to loopback there, where other hosts cannot connect.
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

/**
 * Returns RINGWISE_SECRET, or the content of RINGWISE_SECRET_FILE. Returns an empty text if there is none and the
 * launchers meet on loopback; throws ERR_LAUNCH_ARGUMENT if they meet elsewhere.
 */
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

/** Returns the IP address of a host name, or the name itself if it does not resolve. */
async function addressOf(host: string): Promise<string> {
  return await lookup(host).then(
    ({ address }) => address,
    () => host,
  );
}

/** Returns the address at which this process reaches a server that listens on `bound`. */
function reachable(bound: string): string {
  return { '0.0.0.0': '127.0.0.1', '::': '::1' }[bound] ?? bound;
}

/** Returns the address of a store in the form in which it is shown to users, and that --rdzv-endpoint accepts. */
export function whereIs({ masterAddr, masterPort }: Pick<Rendezvous, 'masterAddr' | 'masterPort'>): string {
  return `${masterAddr.includes(':') ? `[${masterAddr}]` : masterAddr}:${masterPort}`;
}
