import type { Dataset, Indices, IterableDataset } from '../datasets/dataset.ts';
import { originOf } from '../datasets/dataset-module.ts';
import { mapArrays } from '../datasets/map-arrays.ts';
import {
  noBatch,
  noLength,
  noOrigin,
  noState,
  notDataset,
  notSynchronous,
  outOfRange,
  unknownOptions,
} from '../errors.ts';
import { foreignLoaderMembers } from '../foreign-loader-members.ts';
import { refuseForeign } from '../foreign-members.ts';
import { isPromise } from '../maybe-promise.ts';
import type { BatchSource } from '../samplers/batch-sampler.ts';
import { inBatches, inBatchesAsync } from '../samplers/in-batches.ts';
import { isResumable, type Resumable, type SamplerState } from '../samplers/sampler.ts';
import { isTypedArray, type TypedArray } from '../typed-array.ts';
import { asDataset, batchLoader, type Collate, checkIndices, ofOne } from './batch-loader.ts';
import { type Collated, defaultCollate } from './collate.ts';
import { EventLoopTurns } from './event-loop.ts';
import {
  type CollateOption,
  type ConvertOption,
  checkedLoaderOptions,
  type DataLoaderOptions,
  indexedBatches,
  type SingleSamples,
  streamBatching,
  workerOptions,
} from './loader-options.ts';
import { mappedPass, openAsyncPass, openPass, type Pass } from './pass.ts';
import { prefetched } from './prefetch.ts';
import { type LoaderStatistics, WaitTimes } from './wait-times.ts';
import { WorkerPool } from './worker-pool.ts';

/**
 * Iterates over the batches of a data set. Each `for await` is one pass; before a batch, it yields to the event loop if
 * it has not done so for 50 ms. If data set and collate are synchronous, a plain `for…of` works, too, which never
 * yields to the event loop. Run one pass at a time: all passes share one sampler and its position in the epoch.
 */
export class DataLoader<T, B = Collated<T>> implements AsyncIterable<B>, Iterable<B> {
  readonly #open: () => Pass<B>;
  #batches: BatchSource | undefined; // undefined for a stream
  readonly #prefetch: number;
  readonly #waits = new WaitTimes();
  #pool: WorkerPool | null = null;

  /** `source` is a data set, an array of samples, or a stream. */
  constructor(
    source: Dataset<T, unknown> | IterableDataset<T>,
    options: DataLoaderOptions & ConvertOption<T, B>,
  );
  constructor(
    source: (Dataset<T, unknown> | IterableDataset<T>) & (Dataset<B, unknown> | IterableDataset<B>),
    options: DataLoaderOptions & SingleSamples & { readonly collate?: never },
  );
  constructor(
    source: Dataset<T, unknown> | IterableDataset<T>,
    options: DataLoaderOptions & CollateOption<T, B>,
  );
  constructor(source: Dataset<T, B> | IterableDataset<T>, options?: DataLoaderOptions);
  constructor(
    given: unknown,
    givenOptions?: DataLoaderOptions & { readonly collate?: Collate<T, B> | ConvertOption<T, B>['collate'] },
  ) {
    const source = given as Dataset<T, B> | IterableDataset<T>;
    const options = checkedLoaderOptions(givenOptions) as DataLoaderOptions & Partial<CollateOption<T, B>>;
    const { prefetch = 2 } = options;
    const { numWorkers } = workerOptions(options);
    this.#prefetch = prefetch * Math.max(numWorkers, 1);
    const dataset = asDataset(source);
    if (dataset) this.#batches = indexedBatches(dataset.length, options);
    const open = numWorkers > 0 ? this.#workerOpener(source, options) : this.#opener(source, options);
    const { pinMemory } = options;
    const pinned = (batch: B) => mapArrays(batch, (array) => checkedPin(array, pinMemory!(array))) as B;
    this.#open = pinMemory ? () => mappedPass(open(), pinned) : open;
  }

  /** Number of batches of one whole pass. Throws ERR_DATA_LENGTH if the data set or the sampler has no length. */
  get length(): number {
    if (!this.#batches) throw noLength('an iterable data set');
    const { length } = this.#batches;
    if (length === undefined) throw noLength('the batchSampler');
    return length;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<B, void, undefined> {
    let askedMs = performance.now();
    const turns = new EventLoopTurns();
    for await (const { batch, count } of prefetched(this.#open(), this.#prefetch)) {
      if (batch === undefined) throw noBatch();
      if (turns.isDue()) await turns.take();
      this.#advance(count);
      const readyMs = performance.now();
      yield batch;
      const doneMs = performance.now();
      this.#waits.add(count, readyMs - askedMs, doneMs - readyMs);
      askedMs = doneMs;
    }
  }

  /** Runs a synchronous pass. Throws ERR_DATA_ASYNC at the first batch that is a promise. */
  *[Symbol.iterator](): Generator<B, void, undefined> {
    const pass = this.#open();
    let askedMs = performance.now();
    try {
      for (;;) {
        const loaded = pass.next();
        if (isPromise(loaded)) {
          loaded.catch(() => {}); // the loop reports its own error
          throw notSynchronous('the data set or collate');
        }
        if (loaded === undefined) return;
        const { batch, count } = loaded;
        if (batch === undefined) throw noBatch();
        this.#advance(count);
        const readyMs = performance.now();
        yield batch;
        const doneMs = performance.now();
        this.#waits.add(count, readyMs - askedMs, doneMs - readyMs);
        askedMs = doneMs;
      }
    } finally {
      const closed = pass.close();
      if (isPromise(closed)) closed.catch(() => {}); // an asynchronous pass: ERR_DATA_ASYNC is being thrown
    }
  }

  /**
   * Returns the position in the epoch after the last batch that the loop received, for all ranks, as plain JSON.
   * Batches loaded ahead do not count. Throws ERR_DATA_STATE if there is no sampler that has a position.
   */
  state(): SamplerState {
    return this.#resumable().state();
  }

  /**
   * Makes the next pass continue the state's epoch. Number of ranks and batch size may differ from before. Throws
   * ERR_DATA_STATE if the state does not fit.
   */
  load(state: SamplerState): void {
    this.#resumable().load(state);
  }

  /** Returns how long loops over this loader waited for batches and worked on them. */
  statistics(): LoaderStatistics {
    return this.#waits.statistics;
  }

  /**
   * Ends the workers, to free their memory. Otherwise not needed: idle workers do not keep the process alive. A later
   * pass starts new ones. Idempotent.
   */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    await pool?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #opener(
    source: Dataset<T, B> | IterableDataset<T>,
    options: DataLoaderOptions & Partial<CollateOption<T, B>>,
  ): () => Pass<B> {
    const given = options.collate ?? (originOf(source)?.collate as Collate<T, B> | undefined);
    const collate = options.batchSize === null ? ofOne<T, B>(given) : given;
    const dataset = asDataset(source);
    if (!dataset) return streamOpener(source as IterableDataset<T>, options, collate);
    const load = batchLoader(dataset, collate);
    return () => openPass(this.#batches!, load);
  }

  #workerOpener(
    source: Dataset<T, B> | IterableDataset<T>,
    options: DataLoaderOptions & Partial<CollateOption<T, B>>,
  ): () => Pass<B> {
    const origin = originOf(source);
    const dataset = asDataset(source);
    if (!origin) throw noOrigin();
    const checked = workerOptions(options);
    const { url, args } = origin;
    const stream = this.#batches ? null : streamBatching(options);
    return () => {
      if (this.#pool?.hasFailed) void this.close(); // otherwise this pass would only repeat the old error
      this.#pool ??= new WorkerPool({ url, args }, checked);
      const pool = this.#pool;
      const load = (indices: Indices) => {
        checkIndices(indices, dataset!.length); // here, because int32, in which they are sent, cannot hold all numbers
        return pool.load<B>(indices);
      };
      const pass = stream
        ? pool.stream<B>(stream.batchSize, stream.dropLast)
        : { ...openPass(this.#batches!, load), takeReady: pool.takeReady };
      if (checked.persistentWorkers) return pass;
      return {
        ...pass,
        close: async () => {
          try {
            await pass.close();
          } finally {
            await this.close();
          }
        },
      };
    };
  }

  #advance(count: number): void {
    if (this.#batches && isResumable(this.#batches)) this.#batches.advance(count);
  }

  #resumable(): Resumable {
    if (!this.#batches) throw noState('an iterable data set');
    if (!isResumable(this.#batches)) throw noState('the batchSampler');
    return this.#batches;
  }

  static {
    refuseForeign(DataLoader.prototype, 'DataLoader', unknownOptions, foreignLoaderMembers);
  }
}

/** Returns what pinMemory has returned for an array. Throws ERR_DATA_ARGUMENT unless it is an array of that length. */
function checkedPin(array: TypedArray, pinned: unknown): TypedArray {
  if (isTypedArray(pinned) && pinned.length === array.length) return pinned;
  const expected = `a typed array of ${array.length} elements, as it was given`;
  throw outOfRange('DataLoader: the result of pinMemory', expected, pinned);
}

function streamOpener<T, B>(
  stream: IterableDataset<T>,
  options: DataLoaderOptions,
  collate: CollateOption<T, B>['collate'] = defaultCollate as (samples: T[]) => B,
): () => Pass<B> {
  const isAsync = Symbol.asyncIterator in stream;
  // Checked before the options, because wrong options are not the cause.
  if (!isAsync && !(Symbol.iterator in stream)) throw notDataset(stream);
  const { batchSize, dropLast } = streamBatching(options);
  if (isAsync) {
    return () => openAsyncPass(inBatchesAsync(stream, batchSize, dropLast), collate);
  }
  return () => openPass(inBatches(stream, batchSize, dropLast), collate);
}
