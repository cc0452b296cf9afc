// The interfaces of data sets, and two data sets that wrap another one.

import { checkArrayLike, checkIndex } from '../check.ts';
import { badIndex, outOfRange } from '../errors.ts';
import type { Collated } from '../loader/collate.ts';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import { checkFunction } from '../options.ts';

/** Positions of samples in a data set. */
export type Indices = Int32Array | readonly number[];

/** A data set with random access. T is one sample, B the batch that `getBatch` makes. */
export interface Dataset<T, B = Collated<T>> {
  /** Number of samples. */
  readonly length: number;
  /**
   * Returns sample `index`, from 0 to length − 1. The loader may have several calls pending at the same time.
   */
  readonly get: (index: number) => MaybePromise<T>;
  /**
   * Returns a batch of samples. Define it if that is faster than single samples. A loader without a collate function
   * calls this instead of `get`.
   */
  readonly getBatch?: (indices: Indices) => MaybePromise<B>;
}

/**
 * A stream of samples. Each pass creates a new iterator. With several ranks or workers, each iterator must yield only
 * the samples of its own rank and worker: see shard().
 */
export type IterableDataset<T> = Iterable<T> | AsyncIterable<T>;

/** Returns the data set whose samples are the items of an array. */
export function arrayDataset<T, B>(items: readonly T[]): Dataset<T, B> {
  return { length: items.length, get: (index) => items[index] as T };
}

/**
 * Returns a data set unchanged, and the data set of the items of an array. Throws for any other value, such as a
 * stream.
 */
export function checkedDataset<T, B>(what: string, source: Dataset<T, B> | readonly T[]): Dataset<T, B> {
  if (Array.isArray(source)) return arrayDataset(source as readonly T[]);
  const { get, length } = (source ?? {}) as Partial<Dataset<T, B>>;
  if (typeof get === 'function' && Number.isSafeInteger(length)) return source as Dataset<T, B>;
  throw outOfRange(what, 'a data set with length and get(), or an array', source);
}

/** A selection of samples of another data set or of an array, by index. `indices` is kept, not copied. */
export class Subset<T, B = Collated<T>> implements Dataset<T, B> {
  /** Number of samples in the selection. */
  readonly length: number;
  readonly getBatch?: (indices: Indices) => MaybePromise<B>;
  readonly #dataset: Dataset<T, B>;
  readonly #indices: Indices;

  constructor(source: Dataset<T, B> | readonly T[], indices: Indices) {
    const dataset = checkedDataset('Subset: dataset', source);
    checkArrayLike('Subset: indices', indices);
    this.length = indices.length;
    this.#dataset = dataset;
    this.#indices = indices;
    if (dataset.getBatch) {
      this.getBatch = (positions) =>
        dataset.getBatch!(Array.from(positions, (position) => this.#at(position)));
    }
  }

  get(index: number): MaybePromise<T> {
    return this.#dataset.get(this.#at(index));
  }

  #at(position: number): number {
    const index = this.#indices[position];
    if (index === undefined) throw badIndex('Subset', position, this.length);
    // Checked here, because the data set may not check: it could return undefined, or another sample.
    checkIndex('Subset', index, this.#dataset.length);
    return index;
  }
}

/**
 * Returns a data set that passes each sample of `source`, a data set or an array, through `transform` when it is read.
 * Nothing is cached, and `getBatch` of `source` is not used.
 */
export function mapDataset<T, U>(
  source: Dataset<T, unknown> | readonly T[],
  transform: (sample: T, index: number) => MaybePromise<U>,
): Dataset<U> {
  const dataset = checkedDataset('mapDataset: dataset', source);
  checkFunction('mapDataset: transform', transform);
  return {
    length: dataset.length,
    get: (index) => {
      const sample = dataset.get(index);
      return isPromise(sample) ? sample.then((ready) => transform(ready, index)) : transform(sample, index);
    },
  };
}
