// Race 14: a batch was loaded ahead for a view that is over, and the state of the loader is asked for between the batch
// and the vote. The batch is given to the rank that has it now, and a state counts final steps only.
import { loadDataset } from '@ringwise/data';
import { expect, it } from 'vitest';
import { length, loaderOf, slow, step } from '../../../support/loaders.ts';

const digits = await loadDataset<{ length: number; get: (index: number) => number }>(
  new URL('../../../fixtures/numbers.ts', import.meta.url),
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
