// The contracts between data and loader, and two data sets made of others.

import { checkArrayLike } from '../check.ts';
import { badIndex } from '../errors.ts';
import type { Collated } from '../loader/collate.ts';
import { isPromise, type MaybePromise } from '../maybe-promise.ts';
import { checkFunction } from '../options.ts';

export type Indices = Int32Array | readonly number[];

/** Samples by number. T is one sample, B what `getBatch` makes of several. */
export interface Dataset<T, B = Collated<T>> {
  readonly length: number;
  /** `index` is from 0 to length − 1. The loader may have several calls pending at once. */
  readonly get: (index: number) => MaybePromise<T>;
  /** The faster way where there is one: a loader without its own collate calls this once instead of `get` per sample. */
  readonly getBatch?: (indices: Indices) => MaybePromise<B>;
}

/** Samples in the order they come. Each pass asks it for a new iterator; ranks must shard it themselves. */
export type IterableDataset<T> = Iterable<T> | AsyncIterable<T>;

/** The given samples of another data set, by its indices (kept, not copied). */
export class Subset<T, B = Collated<T>> implements Dataset<T, B> {
  readonly length: number;
  readonly getBatch?: (indices: Indices) => MaybePromise<B>;
  readonly #dataset: Dataset<T, B>;
  readonly #indices: Indices;

  constructor(dataset: Dataset<T, B>, indices: Indices) {
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
    return index;
  }
}

/** Each sample passed through `transform` when it is asked for; nothing is cached. */
export function mapDataset<T, U>(
  dataset: Dataset<T, unknown>,
  transform: (sample: T, index: number) => MaybePromise<U>,
): Dataset<U> {
  checkFunction('mapDataset: transform', transform);
  return {
    length: dataset.length,
    get: (index) => {
      const sample = dataset.get(index);
      return isPromise(sample) ? sample.then((ready) => transform(ready, index)) : transform(sample, index);
    },
  };
}
