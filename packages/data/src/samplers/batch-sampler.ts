import { checkInteger } from '../check.ts';
import type { Indices } from '../datasets/dataset.ts';
import { noLength, noState, unknownOptions } from '../errors.ts';
import { foreignBatchSamplerMembers } from '../foreign-loader-members.ts';
import { refuseForeign } from '../foreign-members.ts';
import { checkedOptions, checkFlag, checkIterable, optionNames } from '../options.ts';
import { inBatches } from './in-batches.ts';
import { isResumable, type Resumable, type Sampler, type SamplerState } from './sampler.ts';

/** The indices of each batch. */
export interface BatchSource extends Iterable<Indices> {
  /** Number of batches of one pass, if known. */
  readonly length?: number;
}

/** Options of BatchSampler. */
export interface BatchSamplerOptions {
  /** Drop the last batch if it is not full. Default false. */
  readonly dropLast?: boolean;
}

const names = optionNames<BatchSamplerOptions>({ dropLast: true });

/** Splits a sampler's indices into batches of `batchSize`. The last one may be shorter; `dropLast` drops it then. */
export class BatchSampler implements BatchSource, Resumable {
  readonly #sampler: Sampler;
  readonly #batchSize: number;
  readonly #dropLast: boolean;

  constructor(sampler: Sampler, batchSize: number, options?: BatchSamplerOptions) {
    const { dropLast = false } = checkedOptions('BatchSampler', options, names);
    checkIterable('BatchSampler: sampler', sampler);
    checkFlag('BatchSampler: dropLast', dropLast);
    checkInteger('BatchSampler: batchSize', batchSize, 1);
    this.#sampler = sampler;
    this.#batchSize = batchSize;
    this.#dropLast = dropLast;
  }

  /** Number of batches of one whole pass. Throws ERR_DATA_LENGTH if the sampler has no length. */
  get length(): number {
    const { length } = this.#sampler;
    if (typeof length !== 'number') throw noLength('the sampler');
    const batches = length / this.#batchSize;
    return this.#dropLast ? Math.floor(batches) : Math.ceil(batches);
  }

  [Symbol.iterator](): Generator<number[], void, undefined> {
    return inBatches(this.#sampler, this.#batchSize, this.#dropLast);
  }

  advance(count: number): void {
    if (isResumable(this.#sampler)) this.#sampler.advance(count);
  }

  /** Returns the position of the underlying sampler. Throws if that sampler has none. */
  state(): SamplerState {
    return this.#resumable().state();
  }

  /** Continues from a position that state() returned. Throws if the underlying sampler cannot. */
  load(state: SamplerState): void {
    this.#resumable().load(state);
  }

  #resumable(): Resumable {
    if (!isResumable(this.#sampler)) throw noState('its sampler');
    return this.#sampler;
  }

  static {
    refuseForeign(BatchSampler.prototype, 'BatchSampler', unknownOptions, foreignBatchSamplerMembers);
  }
}
