// Loads the micro-batches of a rank ahead, and starts again from the cursor when the view changes.

import { loadDataset } from '@ringwise/data';
import { afterAll, expect, it } from 'vitest';
import { ElasticLoader } from '../../../src/ledger/elastic-loader.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';

const length = 23;
const open: ElasticLoader[] = [];
afterAll(() => Promise.all(open.map((loader) => loader.close())));

const asked: number[] = [];
const slow = {
  length,
  get: async (index: number) => {
    asked.push(index);
    await new Promise((resolve) => setImmediate(resolve));
    return index;
  },
};

function loaderOf(source: { length: number; get: (index: number) => unknown }, options: object = {}) {
  const ledger = new Ledger(length, { globalBatch: 6, microBatch: 2, seed: 3 });
  const loader = new ElasticLoader<{ readonly data: Float32Array }>(source as never, ledger, options);
  open.push(loader as ElasticLoader);
  return loader;
}

/** Takes the samples of the next step that the rank owns; the step becomes final if `isFinal`. */
async function step(
  loader: ElasticLoader<{ readonly data: Float32Array }>,
  isFinal: boolean,
): Promise<number[]> {
  const plan = loader.plan();
  const samples: number[] = [];
  for (const each of loader.owned(plan)) samples.push(...(await loader.take(each)).data);
  if (isFinal) loader.finish(plan);
  return samples;
}

const digits = await loadDataset<{ length: number; get: (index: number) => number }>(
  new URL('../../fixtures/numbers.ts', import.meta.url),
  length,
);

for (const [name, source, options] of [
  ['an array', { length, get: (index: number) => index }, {}],
  ['a data set that is asynchronous', slow, { prefetch: 3 }],
  ['workers', digits, { numWorkers: 2 }],
] as const)
  it(`uses each sample once when ranks come and go, from ${name}`, async () => {
    const loaders = [loaderOf(source, options), loaderOf(source, options), loaderOf(source, options)];
    const used = new Uint8Array(length);
    let size = 3;
    await Promise.all(loaders.map((loader, rank) => loader.restart({ rank, size })));
    for (let at = 0; loaders[0]!.state().epoch === 0; at++) {
      const isLost = at === 1 || at === 3; // the step is redone by fewer ranks
      for (const loader of loaders.slice(0, size)) {
        const samples = await step(loader, !isLost);
        if (!isLost) for (const sample of samples) used[sample]!++;
      }
      if (!isLost) continue;
      size--;
      await Promise.all(loaders.slice(0, size).map((loader, rank) => loader.restart({ rank, size })));
    }
    expect(used.every((count) => count === 1)).toBe(true);
    expect(loaders[0]!.state()).toEqual({ epoch: 1, step: 0, position: 0 });
  });

it('loads ahead of the training, into the next steps', async () => {
  asked.length = 0;
  const loader = loaderOf(slow, { prefetch: 4 });
  await step(loader, true);
  expect(asked.length).toBeGreaterThan(6);
});

it('continues from a state, and refuses one that does not fit', async () => {
  const [first, second] = [loaderOf(slow), loaderOf(slow)];
  await step(first, true);
  await step(first, false); // not final: a state does not count it
  second.load(first.state());
  await first.restart({ rank: 0, size: 1 });
  expect(await step(second, true)).toEqual(await step(first, true));
  expect(() => second.load({ epoch: 0, step: 4, position: length })).toThrow(
    'load: position: expected one below 23',
  );
  expect(() => second.load({ epoch: -1, step: 0, position: 0 })).toThrow('load: epoch');
});

it('says that only one loop may iterate it', async () => {
  const loader = loaderOf(slow);
  const [, second] = loader.owned(loader.plan());
  await expect(loader.take(second!)).rejects.toThrow(
    'loader: its next batch has positions 0 to 1 of epoch 0; expected positions 2 to 3 of epoch 0.',
  );
});
