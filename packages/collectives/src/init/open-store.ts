// Opens the store for the rendezvous as the plan says; it is closed together with the group.

import { lookup } from 'node:dns/promises';
import {
  FileStore,
  isLoopback,
  MemoryStore,
  type Store,
  type StoreServer,
  serveStoreInWorker,
  TcpStore,
} from '@ringwise/store';
import { isLoopbackName } from '../backends/host-address.ts';
import { CollectiveError } from '../errors.ts';
import { cannotHost, secretMissing } from './errors.ts';
import type { StoreLocation } from './plan.ts';

export interface OpenStore {
  readonly store: Store;
  /**
   * True if a rank of the job serves the store, so it must stay open until the other ranks have left it.
   */
  readonly isHosted: boolean;
  /** Set only if this rank should serve the store but the address is in use: the error of that attempt. */
  readonly taken?: CollectiveError;
  /** Closes what openStore() opened. */
  readonly close: () => Promise<void>;
}

export async function openStore(
  location: StoreLocation,
  rank: number,
  timeoutMs: number,
): Promise<OpenStore> {
  switch (location.kind) {
    case 'nowhere': {
      const store = new MemoryStore();
      return { store, isHosted: false, close: () => store.close() };
    }
    case 'store':
      return { store: location.store, isHosted: false, close: async () => {} };
    case 'file': {
      const store = await FileStore.open(location.directory, { timeoutMs });
      return { store, isHosted: false, close: () => store.close() };
    }
    case 'tcp':
      await checkSecret(location);
      return rank === 0 && !location.isServed ? host(location, timeoutMs) : connect(location, timeoutMs);
  }
}

type Tcp = Extract<StoreLocation, { kind: 'tcp' }>;

/**
 * Rejects if the store would be reached from other hosts without a secret. Every rank checks this, because
 * rank 0 would never open the store and the others would wait for it.
 */
async function checkSecret({ host, port, secret, isServed }: Tcp): Promise<void> {
  if (isServed || secret !== null) return;
  const { address } = await lookup(host).catch(() => ({ address: host }));
  if (!isLoopback(address)) throw new CollectiveError(secretMissing(host, port), null);
}

async function connect(location: Tcp, timeoutMs: number): Promise<OpenStore> {
  const { host, port, secret, isServed } = location;
  const store = await TcpStore.connect({ host, port, timeoutMs, ...(secret === null ? {} : { secret }) });
  return { store, isHosted: !isServed, close: () => store.close() };
}

interface Hosted {
  readonly server: Promise<StoreServer>;
  groups: number;
}

// Time that rank 0 waits for an answer at its address if it cannot listen there.
const takenMs = 2_000;

// Store servers of this process by address. Groups that are open at the same time share one.
const hosted = new Map<string, Hosted>();
const closing = new Map<string, Promise<void>>();

async function host(location: Tcp, timeoutMs: number): Promise<OpenStore> {
  const key = `${location.host}:${location.port}`;
  await closing.get(key);
  const entry = hosted.get(key) ?? { server: serve(location), groups: 0 };
  hosted.set(key, entry);
  entry.groups++;
  const release = async () => {
    if (--entry.groups > 0) return;
    hosted.delete(key);
    const ended = entry.server.then(
      (server) => server.close(),
      () => {},
    );
    closing.set(key, ended);
    await ended;
    closing.delete(key);
  };
  try {
    const { host: bound, port } = await entry.server;
    const wildcards: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
    const client = await connect({ ...location, host: wildcards[bound] ?? bound, port }, timeoutMs);
    const close = async () => {
      await client.close();
      await release();
    };
    return { ...client, close };
  } catch (error) {
    await release();
    if (!CollectiveError.is(error)) throw error;
    // The address may belong to another process with rank 0 of this job; the keys in its store show that.
    const open = await connect(location, Math.min(timeoutMs, takenMs)).catch(() => null);
    if (open === null) throw error;
    return { ...open, isHosted: false, taken: error };
  }
}

async function serve({ host, port, secret }: Tcp): Promise<StoreServer> {
  // A host's own name often resolves to loopback (127.0.1.1), where other hosts cannot connect. So a store with a
  // secret listens on all interfaces.
  const all = host.includes(':') ? '::' : '0.0.0.0';
  try {
    return await serveStoreInWorker(
      secret === null ? { host, port } : { host: isLoopbackName(host) ? host : all, port, secret },
    );
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CollectiveError(cannotHost(host, port, reason), null, { cause });
  }
}
