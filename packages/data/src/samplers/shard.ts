// One rank's part of a stream and, within it, one worker's part. Ranks take samples in turn: rank r of W takes samples
// r, r + W, …; a rank's workers take its samples in turn in the same way.

import { checkShare } from '../check.ts';
import { outOfRange } from '../errors.ts';
import { workerInfo } from '../loader/worker-info.ts';
import { checkedOptions, checkFlag, optionNames } from '../options.ts';
import { notePass } from './note-pass.ts';

/** Options of shard(). */
export interface ShardOptions {
  /** Number of ranks that share the stream. */
  readonly replicas: number;
  /** Rank of this process, from 0 on. */
  readonly rank: number;
  /** Drop up to replicas − 1 samples at the end, so that all ranks get the same number. Default false. */
  readonly dropLast?: boolean;
}

const names = optionNames<ShardOptions>({ replicas: true, rank: true, dropLast: true });

/**
 * Returns the part of `stream` for this rank and, in a DataLoader's worker, for this worker. Every rank and
 * worker reads the whole stream and keeps only its own samples. Without `dropLast`, some ranks may get one
 * sample more than others.
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
  checkShare('shard', replicas, rank);
  const turns = () => new Turns<T>(replicas, rank, dropLast);
  if (Symbol.asyncIterator in stream) {
    return {
      async *[Symbol.asyncIterator]() {
        notePass(stream);
        const part = turns();
        for await (const sample of stream) yield* part.take(sample);
        yield* part.rest();
      },
    };
  }
  return {
    *[Symbol.iterator]() {
      notePass(stream);
      const part = turns();
      for (const sample of stream) yield* part.take(sample);
      yield* part.rest();
    },
  };
}

/** Assigns the samples of a pass to ranks and workers in turn. */
class Turns<T> {
  readonly #replicas: number;
  readonly #rank: number;
  readonly #dropLast: boolean;
  readonly #worker = workerInfo() ?? { id: 0, count: 1 };
  #position = 0; // in the round; a round has one sample for each rank
  #round = 0;
  #mine: T[] = []; // this round's sample, if this worker takes it

  constructor(replicas: number, rank: number, dropLast: boolean) {
    this.#replicas = replicas;
    this.#rank = rank;
    this.#dropLast = dropLast;
  }

  /**
   * Counts the next sample of the stream. When it completes a round, returns this worker's sample of that round, if
   * there is one; else nothing. A sample is returned only then, because all ranks have one only in a complete round.
   */
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

  /** Returns this worker's sample of an incomplete last round, if it has one; nothing if `dropLast` is set. */
  rest(): T[] {
    return this.#dropLast ? [] : this.#handOut();
  }

  #handOut(): T[] {
    const mine = this.#mine;
    this.#mine = [];
    return mine;
  }
}
