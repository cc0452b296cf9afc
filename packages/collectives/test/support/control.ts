// Serves a store for each test, through which the test and its ranks tell each other how far they are.
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import type { RunningRanks } from '@ringwise/testing';
import { afterEach, beforeEach } from 'vitest';

export interface Control {
  /** Port of the store, which the test passes to its ranks. */
  readonly port: number;
  /** Waits until `count` ranks have added themselves to 'ready'. Rejects if `ranks` end before. */
  allReady(count: number, ranks?: RunningRanks): Promise<void>;
  /** Sets `key`, so that ranks that wait for it go on. */
  tell(key: string): Promise<void>;
  /** Forgets what ranks and the test have told, for other ranks of the same test. */
  reset(): Promise<void>;
}

/** Gives each test of the surrounding `describe` a store of its own. */
export function useControl(): Control {
  let server: StoreServer;
  let store: TcpStore;
  const told = new Set<string>();
  beforeEach(async () => {
    server = await serveStore();
    store = await TcpStore.connect({ host: server.host, port: server.port });
  });
  afterEach(async () => {
    await store.close();
    await server.close();
  });
  return {
    get port() {
      return server.port;
    },
    allReady: async (count, ranks) => {
      let haveEnded = false;
      void ranks?.results.then(() => {
        haveEnded = true;
      });
      for (const endMs = performance.now() + 120_000; (await store.add('ready', 0)) < count; await sleep(5)) {
        if (haveEnded) throw new Error('the ranks ended before they were ready');
        if (performance.now() > endMs) throw new Error('the ranks were not ready within 120 s');
      }
    },
    tell: async (key) => {
      told.add(key);
      await store.set(key, '');
    },
    reset: async () => {
      for (const key of ['ready', ...told]) await store.delete(key);
    },
  };
}

/** Tells whether the process exists; a stopped one does. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
