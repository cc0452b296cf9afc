import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import type { Dataset, Indices } from './dataset.ts';

/**
 * Returns the samples of these indices. Calls `get` for all indices without waiting in between, until a call throws.
 * Throws or rejects with the first error in index order, after all started calls have ended.
 */
export function getSamples<T>(dataset: Dataset<T, unknown>, indices: Indices): MaybePromise<T[]> {
  const samples: MaybePromise<T>[] = [];
  for (const index of indices) {
    try {
      samples.push(dataset.get(index));
    } catch (error) {
      if (!samples.some(isPromise)) throw error;
      samples.push(Promise.reject(error));
      break;
    }
  }
  return samples.some(isPromise) ? settled(samples) : (samples as T[]);
}

async function settled<T>(samples: readonly MaybePromise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(samples);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}
