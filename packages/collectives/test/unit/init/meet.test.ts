// Ranks that meet with different world sizes, in every order of their requests: one rank stops after some of its
// requests, while the other goes on until it is done or waits.
import { MemoryStore, type Store } from '@ringwise/store';
import { expect, it } from 'vitest';
import { meet } from '../../../src/init/exchange.ts';

/** Meets as rank `rank` of `size`. Returns why that failed, or null. */
async function join(store: Store, [rank, size]: readonly [number, number]): Promise<string | null> {
  const settings = { 'world size': String(size) };
  const met = await meet({ store, rank, size, timeoutMs: 60_000, settings }, Buffer.from(`card of ${rank}`));
  return 'failure' in met ? met.failure.what : null;
}

/** Returns a view of `store` that answers `count` requests at once, and later ones after `pause`. */
function stopping(store: Store, count: number, pause: () => Promise<unknown>): Store {
  let left = count;
  let paused: Promise<unknown> | undefined;
  return new Proxy(store, {
    get: (target, name) => {
      const method = Reflect.get(target, name, target);
      return async (...args: unknown[]) => {
        if (left-- <= 0) {
          paused ??= pause();
          await paused;
        }
        return await method.apply(target, args);
      };
    },
  });
}

// A MemoryStore does no I/O: after one turn of the event loop, each rank is done or waits for a key.
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const pairs = [
  [0, 3, 1, 2],
  [1, 2, 0, 3],
  [0, 2, 1, 3],
  [1, 3, 0, 2],
] as const;
// No rank makes more than four requests before it waits or is done.
const orders = pairs.flatMap((pair) => [0, 1, 2, 3, 4].map((count) => [...pair, count] as const));

it.each(orders)(
  'ranks %i/%i and %i/%i are told both sizes when the first stops after %i requests',
  async (...order) => {
    const [rank, size, other, others, count] = order;
    const store = new MemoryStore();
    let second: Promise<string | null> | undefined;
    const pause = async () => {
      second = join(store, [other, others]);
      await turn();
    };
    const first = join(stopping(store, count, pause), [rank, size]);
    await turn();
    second ??= join(store, [other, others]);
    expect(await Promise.all([first, second])).toEqual([
      `rank ${other} was started with world size ${others} but rank ${rank} with ${size}`,
      `rank ${rank} was started with world size ${size} but rank ${other} with ${others}`,
    ]);
  },
);

it('a rank of a larger world is told so when the others have just met without it', async () => {
  const store = new MemoryStore();
  const first = join(store, [0, 2]);
  await turn();
  let third: Promise<string | null> | undefined;
  const decided = async () => {
    third = join(store, [2, 3]);
    await third;
  };
  // Its requests until then: compare settings, write its payload, check those of all ranks, decide.
  const second = join(stopping(store, 4, decided), [1, 2]);
  expect(await Promise.all([first, second])).toEqual([null, null]);
  expect(await third).toBe('rank 0 was started with world size 2 but rank 2 with 3');
});
