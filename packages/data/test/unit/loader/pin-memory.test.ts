// Tests when pinMemory is called. Shared memory stands for pinned memory here, because the test can tell from an
// array whether its memory is shared.
import { expect, it } from 'vitest';

const dist = new URL('../../../dist/index.js', import.meta.url).href;
const { DataLoader, loadDataset }: typeof import('../../../src/index.ts') = await import(dist);
type DatasetOf<T> = import('../../../src/index.ts').Dataset<T>;

/** Returns a function for pinMemory that counts its calls. */
function pinning() {
  const calls = { count: 0 };
  const pin = <A extends ArrayBufferView>(array: A): A => {
    calls.count++;
    const memory = new SharedArrayBuffer(array.byteLength);
    new Uint8Array(memory).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return new (array.constructor as new (memory: SharedArrayBuffer) => A)(memory);
  };
  return { calls, pin };
}

const isPinned = (array: ArrayBufferView): boolean => array.buffer instanceof SharedArrayBuffer;

it('every array of a batch is pinned, at any depth, in plain and in asynchronous passes', async () => {
  const { calls, pin } = pinning();
  const samples = [1, 2, 3].map((n) => ({ pair: [n, { label: BigInt(n) }] as const, name: `n${n}` }));
  const loader = new DataLoader(samples, { batchSize: 2, pinMemory: pin });
  const plain = [...loader];
  for await (const batch of loader) expect(batch).toEqual(plain.shift());
  expect(calls.count).toBe(2 * 2 * 2);
  for (const batch of loader) {
    const [numbers, { label }] = batch.pair as unknown as [
      { data: Float32Array },
      { label: { data: BigInt64Array } },
    ];
    expect([isPinned(numbers.data), isPinned(label.data)]).toEqual([true, true]);
    expect(batch.name).toEqual(batch.name.map(String));
    expect([...label.data].map(Number)).toEqual([...numbers.data]);
  }
});

it('batches of workers are pinned on this thread, ahead of the loop', async () => {
  const { calls, pin } = pinning();
  const url = new URL('../../fixtures/squares.mjs', import.meta.url);
  const dataset = await loadDataset<DatasetOf<{ square: Float32Array }>>(url, { length: 6, fault: null });
  await using loader = new DataLoader(dataset, { numWorkers: 1, prefetch: 2, pinMemory: pin });
  let batches = 0;
  for await (const { square } of loader) {
    expect(isPinned(square.data)).toBe(true);
    expect(square.data[1]).toBe(batches ** 2);
    batches++;
  }
  expect(batches).toBe(6);
  expect(calls.count).toBe(6 * 3);
});

it('an error of pinMemory is thrown at its batch', async () => {
  const broken = () => {
    throw new RangeError('no memory');
  };
  const loader = new DataLoader([1, 2], { pinMemory: broken });
  await expect(loader[Symbol.asyncIterator]().next()).rejects.toThrow('no memory');
});

it('a function that returns no array of the same length is refused', async () => {
  for (const pinMemory of [() => undefined, async (array: unknown) => array, () => new Float32Array(3)]) {
    const loader = new DataLoader([1, 2], { batchSize: 2, pinMemory: pinMemory as never });
    expect(() => [...loader]).toThrow(
      /^DataLoader: the result of pinMemory: expected a typed array of 2 elements, as it was given, got /,
    );
    await expect(loader[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'ERR_DATA_ARGUMENT' });
  }
});
