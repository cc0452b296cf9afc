// Computes the same indices as PyTorch's DistributedSampler. The order of an epoch is torch.randperm seeded with
// seed + epoch, equal on all ranks. It is padded with its own beginning, or cut if `dropLast` is set, to a multiple of
// `replicas`, and rank r takes every replicas-th entry, starting with entry r.

import { checkLength, checkShare } from '../check.ts';
import { checkedOptions, checkFlag, optionNames } from '../options.ts';
import { EpochSampler } from './epoch-sampler.ts';
import { identityPermutation, longestPermutation, randperm } from './random.ts';

/** Options of DistributedSampler. */
export interface DistributedSamplerOptions {
  /** Number of ranks that share the data set. */
  readonly replicas: number;
  /** This rank. */
  readonly rank: number;
  /** Whether each epoch has a random order. Default true. */
  readonly shuffle?: boolean;
  /** Seed of the order; must be equal on all ranks. */
  readonly seed?: number;
  /** Drop up to replicas − 1 samples of an epoch instead of repeating some. */
  readonly dropLast?: boolean;
}

const names = optionNames<DistributedSamplerOptions>({
  ...{ replicas: true, rank: true, shuffle: true, seed: true, dropLast: true },
});

/**
 * Yields one rank's share of a data set of `length` samples. All ranks have shares of equal length, so they run equally
 * many steps. Call `setEpoch(e)` before each epoch; otherwise all passes have the same order. Not collective: nothing
 * is sent, because all ranks compute the same order.
 *
 * @example
 * ```ts
 * const sampler = new DistributedSampler(1000, { replicas: group.size, rank: group.rank });
 * for (let epoch = 0; epoch < 2; epoch++) {
 *   sampler.setEpoch(epoch);
 *   for (const index of sampler) console.log(index);
 * }
 * ```
 */
export class DistributedSampler extends EpochSampler {
  readonly #count: number;
  readonly #isShuffled: boolean;

  constructor(length: number, options: DistributedSamplerOptions) {
    const given = checkedOptions('DistributedSampler', options, names);
    const { replicas, rank, shuffle = true, seed = 0, dropLast = false } = given;
    checkFlag('DistributedSampler: shuffle', shuffle);
    checkLength('DistributedSampler', length, shuffle ? longestPermutation : undefined);
    checkShare('DistributedSampler', replicas, rank);
    super(length, { seed: shuffle ? seed : null, advancesByItself: false, replicas, rank, dropLast });
    this.#count = length;
    this.#isShuffled = shuffle;
  }

  protected override order(seed: number): Int32Array {
    return this.#isShuffled ? randperm(this.#count, seed) : identityPermutation(this.#count);
  }
}
