// The store of the processes that a test has started.
import { setTimeout as sleep } from 'node:timers/promises';
import { PrefixStore, type Store } from '@ringwise/store';
import { openStore } from '@ringwise/testing';
import { jobPrefix, viewKey } from '../../src/membership/keys.ts';

/** Resolves when the view `number` of the job is in the store. */
export async function waitForView(number: number): Promise<void> {
  const store = await openStore();
  const runId = process.env.RINGWISE_RUN_ID || process.env.TORCHELASTIC_RUN_ID || 'run';
  await new PrefixStore(jobPrefix(runId), store).wait([viewKey(number)]);
  await store.close();
}

/** Returns a store each of whose calls takes `ms` milliseconds longer. */
export function slowed(store: Store, ms: number): Store {
  const slow = async <T>(call: () => Promise<T>): Promise<T> => {
    await sleep(ms);
    return await call();
  };
  return {
    timeoutMs: store.timeoutMs,
    set: (key, value) => slow(() => store.set(key, value)),
    get: (key, given) => slow(() => store.get(key, given)),
    add: (key, amount) => slow(() => store.add(key, amount)),
    compareSet: (key, expected, desired) => slow(() => store.compareSet(key, expected, desired)),
    wait: (keys, given) => slow(() => store.wait(keys, given)),
    check: (keys) => slow(() => store.check(keys)),
    delete: (key) => slow(() => store.delete(key)),
    numKeys: () => slow(() => store.numKeys()),
    append: (key, value) => slow(() => store.append(key, value)),
    multiGet: (keys, given) => slow(() => store.multiGet(keys, given)),
    multiSet: (entries) => slow(() => store.multiSet(entries)),
    close: () => store.close(),
  };
}
