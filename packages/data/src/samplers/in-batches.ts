// Splits a sequence into lists of `batchSize` items. The last list may be shorter; `dropLast` drops it then.

import { notePass } from './note-pass.ts';

export function* inBatches<T>(
  items: Iterable<T>,
  batchSize: number,
  dropLast: boolean,
): Generator<T[], void, undefined> {
  notePass(items);
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0 && !dropLast) yield batch;
}

/** Does the same for an asynchronous sequence. Reads no more items than the requested batches need. */
export async function* inBatchesAsync<T>(
  items: AsyncIterable<T>,
  batchSize: number,
  dropLast: boolean,
): AsyncGenerator<T[], void, undefined> {
  notePass(items);
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0 && !dropLast) yield batch;
}
