// A random order that is cheap to read: blocks in random order, and the samples of each block in random order. If a
// data set is read by blocks, such as the row groups of a Parquet file, each rank reads each block once per epoch.

import { checkArrayLike, checkInteger, checkLength } from '../check.ts';
import { checkedOptions, optionNames } from '../options.ts';
import { EpochSampler } from './epoch-sampler.ts';
import { identityPermutation, Mt19937, shuffle } from './random.ts';

/** Options of BlockRandomSampler. */
export interface BlockRandomSamplerOptions {
  /** Number of ranks that share the data set. Default 1. */
  readonly replicas?: number;
  /** This rank. Default 0. */
  readonly rank?: number;
  /** Seed of the order; must be equal on all ranks. */
  readonly seed?: number;
  /** Drop up to replicas − 1 samples of an epoch instead of repeating some. */
  readonly dropLast?: boolean;
}

const names = optionNames<BlockRandomSamplerOptions>({
  replicas: true,
  rank: true,
  seed: true,
  dropLast: true,
});

/**
 * Yields one rank's share of samples that are stored in consecutive blocks of these lengths. Ranks take the samples of
 * a block in turn, so all ranks read all blocks, and are in the same block at the same step. Call `setEpoch(e)` before
 * each epoch.
 */
export class BlockRandomSampler extends EpochSampler {
  readonly #starts: Int32Array;

  constructor(blockLengths: ArrayLike<number>, options?: BlockRandomSamplerOptions) {
    const given = checkedOptions('BlockRandomSampler', options, names);
    const { replicas = 1, rank = 0, seed = 0, dropLast = false } = given;
    checkArrayLike('BlockRandomSampler: block lengths', blockLengths);
    checkInteger('BlockRandomSampler: replicas', replicas, 1);
    checkInteger('BlockRandomSampler: rank', rank, 0, replicas - 1);
    const starts = new Int32Array(blockLengths.length + 1);
    let length = 0;
    for (let block = 0; block < blockLengths.length; block++) {
      checkInteger(`BlockRandomSampler: length ${block}`, blockLengths[block]!, 0);
      starts[block + 1] = length += blockLengths[block]!;
    }
    checkLength('BlockRandomSampler', length);
    super(length, { seed, advancesByItself: false, replicas, rank, dropLast });
    this.#starts = starts;
  }

  protected override order(seed: number): Int32Array {
    const random = new Mt19937(seed);
    const starts = this.#starts;
    const samples = identityPermutation(starts.at(-1)!);
    const order = new Int32Array(samples.length);
    let at = 0;
    for (const block of shuffle(identityPermutation(starts.length - 1), random)) {
      const inside = shuffle(samples.subarray(starts[block]!, starts[block + 1]!), random);
      order.set(inside, at);
      at += inside.length;
    }
    return order;
  }
}
