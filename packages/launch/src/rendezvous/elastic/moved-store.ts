// Finds the store to which the ranks of an elastic job have moved by themselves, because the host of their last store
// is lost (@ringwise/elastic, membership/job-store.ts). Each host of the last view has a standby store; the ranks have
// moved to the one that has views.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Store, StoreError, TcpStore } from '@ringwise/store';
import { within } from '../../within.ts';
import { elasticStore, headKey, viewKey } from './elastic-keys.ts';
import { parseView, type ViewFacts } from './view-facts.ts';
import { textAt } from './view-watch.ts';

export interface MovedStore {
  readonly host: string;
  readonly port: number;
  readonly store: Store;
  /** The keys of the job in it. */
  readonly ranks: Store;
  /** A recent view of the job. */
  readonly view: ViewFacts;
  /** Closes the connection. */
  readonly close: () => Promise<void>;
}

/** The stores to search, and the job. */
export interface Search {
  /** `host:port` of each store. */
  readonly addresses: readonly string[];
  readonly runId: string;
  /** Empty if the stores require none. */
  readonly secret: string;
}

const dialMs = 3_000;
/** Milliseconds that a store has to answer; a host that is cut off never does. */
export const answerMs = 5_000;
const pauseMs = 300;

/**
 * Searches all stores until one of them has views, and connects to it; if several have views, to the store of the last
 * move. Resolves with null after `timeoutMs` milliseconds. Rejects with the reason of `signal`.
 */
export async function findMovedStore(
  search: Search,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<MovedStore | null> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const opened = await Promise.all(search.addresses.map((address) => openAt(address, search, signal)));
    const found = opened.filter((each) => each !== null).toSorted(byMoves);
    const last = found.pop() ?? null;
    await Promise.all(found.map((each) => each.close()));
    if (signal.aborted) await last?.close();
    signal.throwIfAborted();
    if (last !== null || performance.now() >= endMs) return last;
    await sleep(pauseMs, undefined, { signal });
  }
}

const byMoves = ({ view: a }: MovedStore, { view: b }: MovedStore): number =>
  a.epoch - b.epoch || a.number - b.number;

/** Connects to a store. Null if it cannot be reached, does not answer, or has no view. */
async function openAt(
  address: string,
  { runId, secret }: Search,
  signal: AbortSignal,
): Promise<MovedStore | null> {
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(address) ?? [];
  let client: TcpStore | null = null;
  try {
    const options = { host, port: Number(port), timeoutMs: dialMs, signal, ...(secret && { secret }) };
    client = await TcpStore.connect(options);
    const ranks = elasticStore(runId, client);
    const view = await within(answerMs, latestView(ranks));
    if (view === null) {
      await client.close();
      return null;
    }
    const connected = client;
    return { host, port: Number(port), store: connected, ranks, view, close: () => connected.close() };
  } catch (error) {
    await client?.close();
    if (!signal.aborted && !StoreError.isInstance(error)) throw error;
    return null;
  }
}

/** Returns a view that exists, at most a few views old; null if there is none. */
async function latestView(ranks: Store): Promise<ViewFacts | null> {
  const head = await textAt(ranks, headKey);
  const text = head === null ? null : await textAt(ranks, viewKey(Number(head)));
  return text === null ? null : parseView(text);
}
