// How a test learns how far its ranks are: a store that it serves anew for each test.
import { type StoreServer, serveStore, TcpStore } from '@ringwise/store';
import { afterEach, beforeEach, expect } from 'vitest';

export interface Control {
  /** Of the store, to be given to the ranks. */
  readonly port: number;
  /** Waits until `count` ranks have added themselves to 'ready'. */
  allReady(count: number): Promise<void>;
  /** Lets those go on who wait for `key`. */
  tell(key: string): Promise<void>;
}

/** For the tests of the `describe` that calls it. */
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
        .poll(() => store.add('ready', 0), { timeout: 20_000, interval: 5 })
        .toBeGreaterThanOrEqual(count),
    tell: (key) => store.set(key, ''),
  };
}

/** Whether there is still such a process, be it stopped. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
