// A stream's part for one rank, and of that for one worker of its loader. Ranks take the samples in turn: with W ranks,
// rank r takes r, r + W, …; a rank's workers take its samples in turn in the same way.

import { checkInteger } from '../check.ts';
import { outOfRange } from '../errors.ts';
import { workerInfo } from '../loader/worker-info.ts';
import { checkedOptions, checkFlag, optionNames } from '../options.ts';

export interface ShardOptions {
  /** Ranks that share the stream. */
  readonly replicas: number;
  readonly rank: number;
  /** Leave out up to replicas − 1 samples at the end, so that all ranks get equally many. Default false. */
  readonly dropLast?: boolean;
}

const names = optionNames<ShardOptions>({ replicas: true, rank: true, dropLast: true });

/**
 * The part of `stream` for this rank and, in a DataLoader's worker, for this worker. Every rank and worker reads the whole
 * stream and keeps its own samples. Without `dropLast` some ranks may get one sample more than others.
 */
export function shard<T>(stream: AsyncIterable<T>, options: ShardOptions): AsyncIterable<T>;
export function shard<T>(stream: Iterable<T>, options: ShardOptions): Iterable<T>;
export function shard<T>(
  stream: Iterable<T> | AsyncIterable<T>,
  options: ShardOptions,
): Iterable<T> | AsyncIterable<T> {
  const { replicas, rank, dropLast = false } = checkedOptions('shard', options, names);
  checkFlag('shard: dropLast', dropLast);
  const isStream = typeof stream === 'object' && stream !== null;
  if (!isStream || !(Symbol.asyncIterator in stream || Symbol.iterator in stream))
    throw outOfRange('shard: stream', 'an iterable', stream);
  checkInteger('shard: replicas', replicas, 1);
  checkInteger('shard: rank', rank, 0, replicas - 1);
  const turns = () => new Turns<T>(replicas, rank, dropLast);
  if (Symbol.asyncIterator in stream) {
    return {
      async *[Symbol.asyncIterator]() {
        const part = turns();
        for await (const sample of stream) yield* part.take(sample);
        yield* part.rest();
      },
    };
  }
  return {
    *[Symbol.iterator]() {
      const part = turns();
      for (const sample of stream) yield* part.take(sample);
      yield* part.rest();
    },
  };
}

/** Whose turn it is, in one pass. */
class Turns<T> {
  readonly #replicas: number;
  readonly #rank: number;
  readonly #dropLast: boolean;
  readonly #worker = workerInfo() ?? { id: 0, count: 1 };
  #position = 0; // in a round, in which each rank takes one
  #round = 0;
  #mine: T[] = []; // this round's sample, if this worker takes it

  constructor(replicas: number, rank: number, dropLast: boolean) {
    this.#replicas = replicas;
    this.#rank = rank;
    this.#dropLast = dropLast;
  }

  /** A sample is handed out when its round is complete, because only then all ranks have one. */
  take(sample: T): T[] {
    if (this.#position === this.#rank && this.#round % this.#worker.count === this.#worker.id) {
      this.#mine = [sample];
    }
    this.#position++;
    if (this.#position < this.#replicas) return [];
    this.#position = 0;
    this.#round++;
    return this.#handOut();
  }

  /** Of a round that the end of the stream cut short. */
  rest(): T[] {
    return this.#dropLast ? [] : this.#handOut();
  }

  #handOut(): T[] {
    const mine = this.#mine;
    this.#mine = [];
    return mine;
  }
}
