// Splits a sequence into lists of `batchSize`. The last one may be shorter, or is dropped.

export function* inBatches<T>(
  items: Iterable<T>,
  batchSize: number,
  dropLast: boolean,
): Generator<T[], void, undefined> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0 && !dropLast) yield batch;
}

/** Reads only as far as requested: each pending `next` stands for one batch. */
export async function* inBatchesAsync<T>(
  items: AsyncIterable<T>,
  batchSize: number,
  dropLast: boolean,
): AsyncGenerator<T[], void, undefined> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0 && !dropLast) yield batch;
}
