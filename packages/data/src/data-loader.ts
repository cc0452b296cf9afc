import type { BatchSource } from './batch-sampler.ts';
import { checkInteger } from './check.ts';
import { type Collated, defaultCollate } from './collate.ts';
import type { Dataset, Indices, IterableDataset } from './dataset.ts';
import { noLength, noState, notDataset, notSynchronous } from './errors.ts';
import { getSamples } from './get-samples.ts';
import { inBatches, inBatchesAsync } from './in-batches.ts';
import { type CollateOption, type DataLoaderOptions, mapBatches, streamBatching } from './loader-options.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import { openAsyncPass, openPass, type Pass } from './pass.ts';
import { prefetched } from './prefetch.ts';
import { isResumable, type Resumable, type SamplerState } from './sampler.ts';

/**
 * Batches of a data set, in passes: each `for await` is one. Where data set and collate are synchronous a plain
 * `for…of` works too, and neither form returns to the event loop between batches.
 * Run one pass at a time: all passes share one sampler and one place in the epoch.
 */
export class DataLoader<T, B = Collated<T>> implements AsyncIterable<B>, Iterable<B> {
  readonly #open: () => Pass<B>;
  readonly #batches: BatchSource | undefined; // undefined for a stream
  readonly #prefetch: number;

  /** An array counts as a map-style data set. */
  constructor(
    source: Dataset<T, unknown> | IterableDataset<T>,
    options: DataLoaderOptions & CollateOption<T, B>,
  );
  constructor(source: Dataset<T, B> | IterableDataset<T>, options?: DataLoaderOptions);
  constructor(
    source: Dataset<T, B> | IterableDataset<T>,
    options: DataLoaderOptions & Partial<CollateOption<T, B>> = {},
  ) {
    const { prefetch = 2, collate } = options;
    checkInteger('DataLoader: prefetch', prefetch, 0);
    this.#prefetch = prefetch;
    const dataset = asDataset(source);
    if (dataset) {
      const batches = mapBatches(dataset.length, options);
      const load = batchLoader(dataset, collate);
      this.#batches = batches;
      this.#open = () => openPass(batches, load);
    } else {
      this.#open = streamOpener(source as IterableDataset<T>, options);
    }
  }

  /** Batches of one whole pass; throws ERR_DATA_LENGTH where the data set is a stream. */
  get length(): number {
    if (!this.#batches) throw noLength('an iterable data set');
    const { length } = this.#batches;
    if (length === undefined) throw noLength('the batchSampler');
    return length;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<B, void, undefined> {
    for await (const { batch, count } of prefetched(this.#open(), this.#prefetch)) {
      this.#advance(count);
      yield batch;
    }
  }

  /** Throws ERR_DATA_ASYNC at the first batch that is a promise. */
  *[Symbol.iterator](): Generator<B, void, undefined> {
    const pass = this.#open();
    try {
      for (;;) {
        const loaded = pass.next();
        if (isPromise(loaded)) {
          loaded.catch(() => {}); // the loop reports its own error
          throw notSynchronous('the data set or collate');
        }
        if (loaded === undefined) return;
        this.#advance(loaded.count);
        yield loaded.batch;
      }
    } finally {
      const closed = pass.close();
      if (isPromise(closed)) closed.catch(() => {}); // only where ERR_DATA_ASYNC is on its way
    }
  }

  /** The place in the epoch after the batch handed out last, for all ranks; plain JSON. Batches loaded ahead do not count. */
  state(): SamplerState {
    return this.#resumable().state();
  }

  /** Makes the next pass take up the rest of the state's epoch. World size and batch size may differ from then. */
  load(state: SamplerState): void {
    this.#resumable().load(state);
  }

  #advance(count: number): void {
    if (this.#batches && isResumable(this.#batches)) this.#batches.advance(count);
  }

  #resumable(): Resumable {
    if (!this.#batches) throw noState('an iterable data set');
    if (!isResumable(this.#batches)) throw noState('the batchSampler');
    return this.#batches;
  }
}

function asDataset<T, B>(source: Dataset<T, B> | IterableDataset<T>): Dataset<T, B> | undefined {
  if (Array.isArray(source)) return { length: source.length, get: (index) => source[index] as T };
  return 'get' in source && 'length' in source ? source : undefined;
}

function streamOpener<T, B>(
  stream: IterableDataset<T>,
  options: DataLoaderOptions & Partial<CollateOption<T, B>>,
): () => Pass<B> {
  const { batchSize, dropLast } = streamBatching(options);
  const collate = options.collate ?? (defaultCollate as (samples: T[]) => B);
  if (Symbol.asyncIterator in stream) {
    return () => openAsyncPass(inBatchesAsync(stream, batchSize, dropLast), collate);
  }
  if (Symbol.iterator in stream) return () => openPass(inBatches(stream, batchSize, dropLast), collate);
  throw notDataset();
}

function batchLoader<T, B>(
  dataset: Dataset<T, B>,
  collate: ((samples: T[]) => MaybePromise<B>) | undefined,
): (indices: Indices) => MaybePromise<B> {
  if (dataset.getBatch && !collate) return (indices) => dataset.getBatch!(indices);
  const make = collate ?? (defaultCollate as (samples: T[]) => B);
  return (indices) => {
    const samples = getSamples(dataset, indices);
    return isPromise(samples) ? samples.then(make) : make(samples);
  };
}
