// PyTorch's DistributedSampler, index for index: an epoch's order is torch.randperm seeded with seed + epoch, equal on
// all ranks; it is padded with its own beginning (or cut) to a multiple of `replicas`, and rank r takes every
// replicas-th entry from r on.

import { checkInteger, checkLength } from '../check.ts';
import { checkedOptions, checkFlag, optionNames } from '../options.ts';
import { EpochSampler } from './epoch-sampler.ts';
import { identity, randperm } from './random.ts';

export interface DistributedSamplerOptions {
  /** Ranks that share the data set. */
  readonly replicas: number;
  readonly rank: number;
  readonly shuffle?: boolean;
  /** Must be equal on all ranks. */
  readonly seed?: number;
  /** Leave out up to replicas − 1 samples of an epoch instead of repeating some. */
  readonly dropLast?: boolean;
}

const names = optionNames<DistributedSamplerOptions>({
  ...{ replicas: true, rank: true, shuffle: true, seed: true, dropLast: true },
});

/**
 * One rank's share of a data set of `length` samples; every rank's share is equally long, so ranks stay in step.
 * Call `setEpoch(e)` before each epoch: two passes without it give the same order.
 * Not collective: nothing is sent, ranks agree because they compute the same.
 */
export class DistributedSampler extends EpochSampler {
  readonly #count: number;
  readonly #isShuffled: boolean;

  constructor(length: number, options: DistributedSamplerOptions) {
    const given = checkedOptions('DistributedSampler', options, names);
    const { replicas, rank, shuffle = true, seed = 0, dropLast = false } = given;
    checkFlag('DistributedSampler: shuffle', shuffle);
    checkLength('DistributedSampler', length);
    checkInteger('DistributedSampler: replicas', replicas, 1);
    checkInteger('DistributedSampler: rank', rank, 0, replicas - 1);
    super(length, { seed: shuffle ? seed : null, advancesByItself: false, replicas, rank, dropLast });
    this.#count = length;
    this.#isShuffled = shuffle;
  }

  protected override order(seed: number): Int32Array {
    return this.#isShuffled ? randperm(this.#count, seed) : identity(this.#count);
  }
}
