// Batches of samples of similar length, so that padding them to the longest costs little. The order of an epoch
// consists of groups. A group has the samples of one step: one batch on every rank. So all ranks work about equally
// long on a step.
//
// The samples are shuffled. All full groups are split into pools of nearly equal size, at most 50 groups each. Each
// pool is sorted by length and split into groups, and the groups of all pools are shuffled. Because of the pools, the
// samples in a group change from epoch to epoch.

import { checkArrayLike, checkInteger, checkLength } from '../check.ts';
import { badState, outOfRange } from '../errors.ts';
import { checkedOptions, optionNames } from '../options.ts';
import { checkState, EpochSampler } from './epoch-sampler.ts';
import { identityPermutation, Mt19937, shuffle } from './random.ts';
import type { SamplerState } from './sampler.ts';

const groupsPerPool = 50;

/** Options of LengthGroupedSampler. */
export interface LengthGroupedSamplerOptions {
  /** Batch size of the loader: samples per batch on one rank. */
  readonly batchSize: number;
  /** Number of ranks that share the data set. Default 1. */
  readonly replicas?: number;
  /** This rank. Default 0. */
  readonly rank?: number;
  /** Seed of the order; must be equal on all ranks. Default 0. */
  readonly seed?: number;
  /** Drop up to replicas − 1 samples of an epoch instead of repeating some. Default false. */
  readonly dropLast?: boolean;
}

const names = optionNames<LengthGroupedSamplerOptions>({
  ...{ batchSize: true, replicas: true, rank: true, seed: true, dropLast: true },
});

/**
 * Yields the indices of one rank's samples. Each run of `batchSize` indices has samples of similar `lengths` (kept, not
 * copied). If the number of samples is not a multiple of batchSize × replicas, the last batch of an epoch has samples
 * of any length. Give the DataLoader the same batchSize. Call `setEpoch(e)` before each epoch. load() adopts the group
 * size of the state: with another number of ranks or another batch size every sample is still used once, but lengths in
 * a batch are less similar, also in later epochs of this sampler.
 */
export class LengthGroupedSampler extends EpochSampler {
  readonly #lengths: ArrayLike<number>;
  #groupSize: number;

  constructor(lengths: ArrayLike<number>, options: LengthGroupedSamplerOptions) {
    const given = checkedOptions('LengthGroupedSampler', options, names);
    const { batchSize, replicas = 1, rank = 0, seed = 0, dropLast = false } = given;
    checkArrayLike('LengthGroupedSampler: lengths', lengths);
    checkLength('LengthGroupedSampler', lengths.length);
    checkInteger('LengthGroupedSampler: batchSize', batchSize, 1);
    checkInteger('LengthGroupedSampler: replicas', replicas, 1);
    checkInteger('LengthGroupedSampler: rank', rank, 0, replicas - 1);
    for (let i = 0; i < lengths.length; i++) {
      if (!Number.isFinite(lengths[i])) {
        throw outOfRange(`LengthGroupedSampler: lengths[${i}]`, 'a finite number', lengths[i]);
      }
    }
    super(lengths.length, { seed, advancesByItself: false, replicas, rank, dropLast });
    this.#lengths = lengths;
    this.#groupSize = batchSize * replicas;
  }

  override state(): SamplerState {
    return { ...super.state(), groupSize: this.#groupSize };
  }

  override load(state: SamplerState): void {
    checkState('LengthGroupedSampler', state);
    const { groupSize } = state;
    if (!Number.isSafeInteger(groupSize) || groupSize! < 1) {
      throw badState('LengthGroupedSampler', 'groupSize', 'an integer of at least 1', groupSize);
    }
    super.load(state);
    this.#groupSize = groupSize!;
  }

  protected override order(seed: number): Int32Array {
    const random = new Mt19937(seed);
    const lengths = this.#lengths;
    const size = this.#groupSize;
    const samples = shuffle(identityPermutation(lengths.length), random);
    const groups = Math.floor(samples.length / size);
    // Samples that do not fill a group belong to no pool and stay at the end.
    const pools = Math.ceil(groups / groupsPerPool);
    const startOf = (pool: number) => Math.floor((pool * groups) / pools) * size;
    for (let pool = 0; pool < pools; pool++) {
      samples.subarray(startOf(pool), startOf(pool + 1)).sort((a, b) => lengths[b]! - lengths[a]!);
    }
    const order = samples.slice();
    for (const [to, from] of shuffle(identityPermutation(groups), random).entries()) {
      order.set(samples.subarray(from * size, (from + 1) * size), to * size);
    }
    return order;
  }
}
