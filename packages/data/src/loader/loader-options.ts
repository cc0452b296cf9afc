// Options of a DataLoader, and the checks of which options exclude each other (as in PyTorch).

import { checkInteger } from '../check.ts';
import { excludes } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { checkedOptions, checkFlag, checkFunction, checkIterable, optionNames } from '../options.ts';
import { BatchSampler, type BatchSource } from '../samplers/batch-sampler.ts';
import type { Sampler } from '../samplers/sampler.ts';
import { RandomSampler, SequentialSampler } from '../samplers/samplers.ts';
import type { TypedArray } from '../typed-array.ts';

/** Options of DataLoader. */
export interface DataLoaderOptions {
  /** Number of samples per batch, default 1; null for single samples without collation. */
  readonly batchSize?: number | null;
  /** Drop the last batch if it is not full. Default false. */
  readonly dropLast?: boolean;
  /** Use a new random order in every pass. Default false. For several ranks use a DistributedSampler instead. */
  readonly shuffle?: boolean;
  /** Seed for `shuffle`. Default 0: every run uses the same orders. */
  readonly seed?: number;
  /** Order of the samples. Excludes `shuffle` and `seed`. */
  readonly sampler?: Sampler;
  /** Indices of each batch. Excludes all options above. */
  readonly batchSampler?: BatchSource;
  /** Number of batches that an asynchronous data set, or each worker, loads ahead. Default 2. */
  readonly prefetch?: number;
  /**
   * Number of threads (workers) that load and collate batches. The data set must come from loadDataset(), and each
   * thread makes its own copy of it. Default 0: the calling thread loads.
   */
  readonly numWorkers?: number;
  /** Whether workers are kept after a pass. Default true; starting one takes about 50 ms. */
  readonly persistentWorkers?: boolean;
  /**
   * Copies an array into memory that a device can read directly, for example pinArray of @ringwise/tensor.
   * Applied to each typed array of a batch, on the calling thread, as soon as the batch is loaded, before the loop
   * receives it.
   */
  readonly pinMemory?: <A extends TypedArray>(array: A) => A;
  /** Base of the workers' seeds: `seed` in the workerInfo() of worker i is this + i. Default 0. */
  readonly workerSeed?: number;
  /** Milliseconds from the request for a worker's batch until ERR_DATA_TIMEOUT. Default 120,000. */
  readonly timeoutMs?: number;
}

/** Makes a batch from samples, instead of `defaultCollate` or the data set's own `getBatch`. */
export interface CollateOption<T, B> {
  /** Makes a batch of samples. May return a promise. */
  readonly collate: (samples: T[]) => MaybePromise<B>;
}

/** Makes the loader yield single samples instead of batches. */
export interface SingleSamples {
  /** No batches. */
  readonly batchSize: null;
}

/** Changes each sample of a loader that makes no batches. */
export interface ConvertOption<T, B> extends SingleSamples {
  /** Converts a sample. The loop receives the result. May return a promise. */
  readonly collate: (sample: T) => MaybePromise<B>;
}

const names = optionNames<DataLoaderOptions & CollateOption<unknown, unknown>>({
  ...{ batchSize: true, dropLast: true, shuffle: true, seed: true, sampler: true, batchSampler: true },
  ...{ prefetch: true, numWorkers: true, persistentWorkers: true, pinMemory: true, workerSeed: true },
  ...{ timeoutMs: true, collate: true },
});

/** Checks names and types of the options. Workers' numbers and combinations of options are checked later. */
export function checkedLoaderOptions<O extends DataLoaderOptions & { readonly collate?: unknown }>(
  given: O | undefined,
): O {
  const options = checkedOptions('DataLoader', given, names);
  const { sampler, batchSampler, pinMemory, collate, prefetch = 2, batchSize = 1, seed = 0 } = options;
  for (const name of ['dropLast', 'shuffle', 'persistentWorkers'] as const)
    if (options[name] !== undefined) checkFlag(`DataLoader: ${name}`, options[name]);
  checkInteger('DataLoader: prefetch', prefetch, 0);
  if (batchSize !== null) checkInteger('DataLoader: batchSize', batchSize, 1);
  else if (options.dropLast)
    throw excludes('batchSize null', ['dropLast'], 'It makes no batches, so none can be short.');
  checkInteger('DataLoader: seed', seed, 0);
  if (sampler !== undefined) checkIterable('DataLoader: sampler', sampler);
  if (batchSampler !== undefined) checkBatches(batchSampler);
  if (collate !== undefined) checkFunction('DataLoader: collate', collate);
  if (pinMemory !== undefined) checkFunction('DataLoader: pinMemory', pinMemory);
  return options;
}

/** Checks a batchSampler. The batches can be checked before the first pass only if it is an array. */
function checkBatches(batches: unknown): void {
  const what = 'DataLoader: batchSampler';
  checkIterable(what, batches);
  if (!Array.isArray(batches)) return;
  for (const [i, batch] of batches.entries())
    checkIterable(`${what}[${i}]`, batch, 'a list of indices, as [[0, 1], [2]]; single ones are a sampler');
}

/** Returns the batches of a data set with `length` samples. Throws for options that exclude each other. */
export function indexedBatches(length: number, options: DataLoaderOptions): BatchSource {
  const { batchSize = 1, dropLast = false, shuffle = false, seed = 0, sampler, batchSampler } = options;
  if (batchSampler) {
    refuse(
      options,
      'batchSampler',
      ['batchSize', 'dropLast', 'shuffle', 'seed', 'sampler'],
      'It makes whole batches.',
    );
    return batchSampler;
  }
  if (sampler) {
    refuse(options, 'sampler', ['shuffle', 'seed'], 'The sampler decides the order; give the seed to it.');
  }
  const order = sampler ?? (shuffle ? new RandomSampler(length, { seed }) : new SequentialSampler(length));
  return new BatchSampler(order, batchSize ?? 1, { dropLast });
}

/** Returns how a stream is split into batches. Throws for options that a stream excludes. */
export function streamBatching(options: DataLoaderOptions): { batchSize: number; dropLast: boolean } {
  const { batchSize = 1, dropLast = false } = options;
  const why = 'An iterable data set decides its own order.';
  refuse(options, 'an iterable data set', ['shuffle', 'seed', 'sampler', 'batchSampler'], why);
  return { batchSize: batchSize ?? 1, dropLast };
}

/** Returns the options of workers, checked and with defaults. */
export function workerOptions(options: DataLoaderOptions & { readonly collate?: unknown }) {
  const { numWorkers = 0, persistentWorkers = true, workerSeed = 0, timeoutMs = 120_000 } = options;
  const isSingle = options.batchSize === null;
  checkInteger('DataLoader: numWorkers', numWorkers, 0, 1024);
  checkInteger('DataLoader: workerSeed', workerSeed, 0);
  checkInteger('DataLoader: timeoutMs', timeoutMs, 1);
  if (numWorkers > 0 && options.collate) {
    throw excludes('numWorkers', ['collate'], "Export it from the data set's module.");
  }
  return { numWorkers, persistentWorkers, workerSeed, timeoutMs, isSingle };
}

/** Throws if options in `excluded` are set together with `given`. A flag that is false counts as not set. */
function refuse(
  options: DataLoaderOptions,
  given: string,
  excluded: readonly (keyof DataLoaderOptions)[],
  why: string,
): void {
  const also = excluded.filter((name) => options[name] !== undefined && options[name] !== false);
  if (also.length > 0) throw excludes(given, also, why);
}
