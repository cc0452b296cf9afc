// Serves a store for each test, through which the test and its ranks tell each other how far they are.
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { afterEach, beforeEach, expect } from 'vitest';

export interface Control {
  /** Port of the store, which the test passes to its ranks. */
  readonly port: number;
  /** Waits until `count` ranks have added themselves to 'ready'. */
  allReady(count: number): Promise<void>;
  /** Sets `key`, so that ranks that wait for it go on. */
  tell(key: string): Promise<void>;
}

/** Gives each test of the surrounding `describe` a store of its own. */
export function useControl(): Control {
  let server: StoreServer;
  let store: TcpStore;
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
    allReady: (count) =>
      expect
        .poll(() => store.add('ready', 0), { timeout: 60_000, interval: 5 })
        .toBeGreaterThanOrEqual(count),
    tell: (key) => store.set(key, ''),
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
