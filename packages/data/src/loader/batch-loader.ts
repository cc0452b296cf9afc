// Loads a batch for given indices, in the calling thread.

import { checkIndex, checkInteger } from '../check.ts';
import { arrayDataset, type Dataset, type Indices, type IterableDataset } from '../datasets/dataset.ts';
import { getSamples } from '../datasets/get-samples.ts';
import { notDataset } from '../errors.ts';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import { checkFunction } from '../options.ts';
import { defaultCollate } from './collate.ts';

/** Makes a batch from samples. In a loader without batches, converts a single sample. */
export type Collate<T, B> = (samples: T[]) => MaybePromise<B>;

/**
 * Adapts `collate` to a loader without batches: calls it with the single sample of each group. Without `collate`,
 * returns the sample unchanged.
 */
export const ofOne = <T, B>(collate: unknown): Collate<T, B> => {
  const convert = (collate ?? ((sample: T) => sample)) as (sample: T) => MaybePromise<B>;
  return ([sample]) => convert(sample!);
};

/**
 * Returns the data set if `source` has `get` and `length`, or is an array. Returns undefined for any other object,
 * which may be a stream. Throws for a value that is not an object.
 */
export function asDataset<T, B>(source: Dataset<T, B> | IterableDataset<T>): Dataset<T, B> | undefined {
  if (Array.isArray(source)) return arrayDataset(source as readonly T[]);
  if (typeof source !== 'object' || source === null) throw notDataset(source);
  if (!('get' in source && 'length' in source)) return undefined;
  checkFunction('DataLoader: get of the data set', source.get);
  checkInteger('DataLoader: length of the data set', source.length, 0);
  return source;
}

/**
 * Checks the indices of a batch, which a sampler of the program may have computed. The data set may not check them: it
 * could return undefined, or another sample than the sampler chose. Throws ERR_DATA_INDEX.
 */
export function checkIndices(indices: Indices, length: number): void {
  for (const index of indices) checkIndex('DataLoader', index, length);
}

/** Returns a function that loads the batch of given indices. */
export function batchLoader<T, B>(
  dataset: Dataset<T, B>,
  collate: Collate<T, B> | undefined,
): (indices: Indices) => MaybePromise<B> {
  const make = collate ?? (defaultCollate as (samples: T[]) => B);
  return (indices) => {
    checkIndices(indices, dataset.length);
    if (dataset.getBatch && !collate) return dataset.getBatch(indices);
    const samples = getSamples(dataset, indices);
    return isPromise(samples) ? samples.then(make) : make(samples);
  };
}
