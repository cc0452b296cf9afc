import { afterEach, expect, it, vi } from 'vitest';
import { DataLoader, shard } from '../../../src/index.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function* numbers() {
  yield* [1, 2, 3];
}
async function* later() {
  yield* [1, 2, 3];
}
const half = { replicas: 2, rank: 0 };

it.each([
  ['a generator', () => numbers()],
  ['an asynchronous generator', () => later()],
  ['a shard of a generator', () => shard(numbers(), half)],
  ['a shard of an asynchronous generator', () => shard(later(), half)],
])('warns once of a second pass over %s, which has no samples', async (_, make) => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const loader = new DataLoader<number>(make() as AsyncIterable<number>, { batchSize: 2 });
  const batchesOf = async () => {
    let batches = 0;
    for await (const _ of loader) batches++;
    return batches;
  };
  expect(await batchesOf()).toBeGreaterThan(0);
  expect(warning).not.toHaveBeenCalled();
  expect([await batchesOf(), await batchesOf()]).toEqual([0, 0]);
  expect(warning).toHaveBeenCalledTimes(1);
  expect(warning).toHaveBeenCalledWith(
    expect.stringContaining('a second pass over an iterator has no samples'),
    {
      type: 'RingwiseWarning',
      code: 'RINGWISE_ITERATOR_ENDED',
    },
  );
});

it('does not warn where each pass begins anew', async () => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  for (const stream of [{ [Symbol.iterator]: numbers }, { [Symbol.asyncIterator]: later }, new Set([1, 2])]) {
    const loader = new DataLoader<number>(shard(stream as Iterable<number>, half), { batchSize: 1 });
    for (let pass = 0; pass < 2; pass++) {
      const seen = [];
      for await (const batch of loader) seen.push(batch);
      expect(seen.length).toBeGreaterThan(0);
    }
  }
  expect(warning).not.toHaveBeenCalled();
});
