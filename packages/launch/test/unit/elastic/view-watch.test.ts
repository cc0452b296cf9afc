// Tests that a launcher follows the views of a job while the members remove old ones.
import { MemoryStore, StoreError } from '@ringwise/store';
import { expect, test } from 'vitest';
import { headKey, viewKey } from '../../../src/rendezvous/elastic/elastic-keys.ts';
import { watchViews } from '../../../src/rendezvous/elastic/view-watch.ts';

const text = (number: number): string =>
  JSON.stringify({
    ...{ number, members: [], joined: [], lost: [], left: [], finalSteps: 0, ended: null },
  });

test('views are passed on in order, from the latest one if those before are gone', async () => {
  const store = new MemoryStore();
  const seen: number[] = [];
  await store.set(viewKey(0), text(0));
  const watch = watchViews(store, ({ number }) => seen.push(number));
  await watch.refresh();
  expect(seen).toEqual([0]);
  for (const number of [4, 5]) await store.set(viewKey(number), text(number));
  await store.set(headKey, '4');
  await watch.refresh();
  expect(seen).toEqual([0, 4, 5]);
  await watch.close();
});

test('a view that is removed while it is looked for is not waited for', async () => {
  const memory = new MemoryStore();
  await memory.set(viewKey(0), text(0));
  // The view is gone when the request arrives that reads it.
  let isGone = false;
  const reads: readonly (string | symbol)[] = ['get', 'multiGet', 'compareSet'];
  const store = new Proxy(memory, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        if (reads.includes(name) && [args[0]].flat().includes(viewKey(0))) {
          isGone = true;
          await memory.delete(viewKey(0));
        }
        return (await Reflect.apply(value, target, args)) as unknown;
      };
    },
  });
  const seen: number[] = [];
  const watch = watchViews(store, ({ number }) => seen.push(number));
  await watch.refresh();
  expect(isGone).toBe(true);
  await memory.set(viewKey(3), text(3));
  await memory.set(headKey, '3');
  await watch.refresh();
  expect(seen.at(-1)).toBe(3);
  await watch.close();
});

/** Returns the store with one call of these methods that rejects with `error`. */
function failingOnce(memory: MemoryStore, methods: readonly string[], error: Error): MemoryStore {
  let hasFailed = false;
  return new Proxy(memory, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        if (!hasFailed && methods.includes(String(name))) {
          hasFailed = true;
          throw error;
        }
        return (await Reflect.apply(value, target, args)) as unknown;
      };
    },
  });
}

test('views are followed on after a wait that a busy store has refused', async () => {
  const memory = new MemoryStore();
  const store = failingOnce(memory, ['wait'], new StoreError('ERR_STORE_BUSY', 'too many connections'));
  const seen = new Promise<number>((resolve) => {
    const watch = watchViews(store, ({ number }) => {
      void watch.close().then(() => resolve(number));
    });
  });
  await new Promise(setImmediate);
  await memory.set(viewKey(0), text(0));
  expect(await seen).toBe(0);
});

test('views are read again after a call that has failed', async () => {
  const memory = new MemoryStore();
  const reads = ['get', 'multiGet', 'compareSet'];
  const store = failingOnce(memory, reads, new StoreError('ERR_STORE_TIMEOUT', 'no answer'));
  const seen: number[] = [];
  const watch = watchViews(store, ({ number }) => seen.push(number));
  await watch.refresh().catch(() => {});
  await memory.set(viewKey(0), text(0));
  await watch.refresh();
  expect(seen).toEqual([0]);
  await watch.close();
});
