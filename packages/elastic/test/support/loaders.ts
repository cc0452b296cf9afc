// Loaders of elastic jobs in the process of the test.
import { afterAll } from 'vitest';
import { ElasticLoader } from '../../src/ledger/elastic-loader.ts';
import { Ledger } from '../../src/ledger/ledger.ts';

/** Number of samples. */
export const length = 23;
const open: ElasticLoader[] = [];
afterAll(() => Promise.all(open.map((loader) => loader.close())));

/** Indices that `slow` was asked for. */
export const asked: number[] = [];
export const slow = {
  length,
  get: async (index: number) => {
    asked.push(index);
    await new Promise((resolve) => setImmediate(resolve));
    return index;
  },
};

export function loaderOf(source: { length: number; get: (index: number) => unknown }, options: object = {}) {
  const ledger = new Ledger(length, { globalBatch: 6, microBatch: 2, seed: 3 });
  const loader = new ElasticLoader<{ readonly data: Float32Array }>(source as never, ledger, options);
  open.push(loader as ElasticLoader);
  return loader;
}

/** Takes the samples of the next step that the rank owns; the step becomes final if `isFinal`. */
export async function step(
  loader: ElasticLoader<{ readonly data: Float32Array }>,
  isFinal: boolean,
): Promise<number[]> {
  const plan = loader.plan();
  const samples: number[] = [];
  for (const each of loader.owned(plan)) samples.push(...(await loader.take(each)).data);
  if (isFinal) loader.finish(plan);
  return samples;
}
