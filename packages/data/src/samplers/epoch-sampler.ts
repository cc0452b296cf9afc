// The base class of samplers whose order is a function of seed and epoch, and is shared by `replicas` ranks in turn.
//
// Position p of an epoch is entry p of that order; positions beyond the end start again at 0 (padding). Rank r of W
// takes positions start + r, start + r + W, …. When every rank has taken k samples, the ranks together have
// taken exactly the positions start … start + kW − 1. Therefore one global number, `consumed`, is a position
// in an epoch for any W.

import { checkInteger } from '../check.ts';
import { badState, notAState, unknownOptions } from '../errors.ts';
import { foreignSamplerMembers } from '../foreign-loader-members.ts';
import { refuseForeign } from '../foreign-members.ts';
import { checkFlag } from '../options.ts';
import type { Resumable, Sampler, SamplerState } from './sampler.ts';

export interface EpochSamplerOptions {
  /** Seed of the order; null if the order never changes. */
  readonly seed: number | null;
  /** Whether a second pass without `setEpoch` uses the next epoch instead of repeating this one. */
  readonly advancesByItself: boolean;
  readonly replicas?: number;
  readonly rank?: number;
  /** Whether the positions that do not give each rank one more sample are dropped instead of padded. Default false. */
  readonly dropLast?: boolean;
}

/** `total`, the constructor's first argument, is the number of samples of an epoch over all ranks. */
export abstract class EpochSampler implements Sampler, Resumable {
  /** Number of samples of one whole epoch on this rank. */
  readonly length: number;
  readonly #total: number;
  readonly #advancesByItself: boolean;
  readonly #replicas: number;
  readonly #rank: number;
  readonly #dropLast: boolean;
  #seed: number | null;
  #epoch = 0;
  #consumed = 0;
  #isTold = false; // whether the program has called setEpoch()
  #repetitions = 0; // passes in the order of the one before, since setEpoch() or load()
  #isPassAhead = true; // whether #epoch and #consumed are where the next pass begins, rather than of the last pass

  protected constructor(total: number, options: EpochSamplerOptions) {
    const { seed, advancesByItself, replicas = 1, rank = 0, dropLast = false } = options;
    checkFlag(`${this.constructor.name}: dropLast`, dropLast);
    if (seed !== null) checkInteger(`${this.constructor.name}: seed`, seed, 0);
    this.#total = total;
    this.#seed = seed;
    this.#advancesByItself = advancesByItself;
    this.#replicas = replicas;
    this.#rank = rank;
    this.#dropLast = dropLast;
    this.length = this.#share(total);
  }

  /**
   * Returns the whole epoch's order over all ranks: `total` indices. Must be equal on all ranks for equal `seed`, which
   * is the sampler's seed + epoch.
   */
  protected abstract order(seed: number): Int32Array;

  /** Epoch of the last pass that has begun; of the next pass if there was none, or after setEpoch() or load(). */
  get epoch(): number {
    return this.#epoch;
  }

  /** Sets the epoch of the next pass. If `load` has just restored this epoch, its position is kept. */
  setEpoch(epoch: number): void {
    checkInteger(`${this.constructor.name}.setEpoch: epoch`, epoch, 0);
    this.#isTold = true;
    this.#repetitions = 0;
    this.#moveTo(epoch);
  }

  /** Yields this rank's indices. The pass begins, and its order is computed, when the first index is requested. */
  *[Symbol.iterator](): Generator<number, void, undefined> {
    if (!this.#isPassAhead && !this.#advancesByItself && this.#seed !== null) this.#noteRepetition();
    if (!this.#isPassAhead) this.#moveTo(this.#epoch + (this.#advancesByItself ? 1 : 0));
    this.#isPassAhead = false;
    const start = this.#consumed;
    const count = this.#share(this.#total - start);
    if (count === 0) return;
    const order = this.order((this.#seed ?? 0) + this.#epoch);
    for (let i = 0; i < count; i++) {
      yield order[(start + this.#rank + i * this.#replicas) % this.#total]!;
    }
  }

  /**
   * Counts `count` more samples as used on this rank, and equally many on each other rank. Called by a
   * DataLoader.
   */
  advance(count: number): void {
    this.#consumed = Math.min(this.#consumed + count * this.#replicas, this.#total);
  }

  /** Returns the position as plain JSON, equal on all ranks that have taken the same number of samples. */
  state(): SamplerState {
    return { seed: this.#seed, epoch: this.#epoch, consumed: this.#consumed, length: this.#total };
  }

  /** Makes the next pass continue the state's epoch with the state's seed. Later passes are whole. */
  load(state: SamplerState): void {
    const name = this.constructor.name;
    checkState(name, state);
    if (state.length !== this.#total) throw badState(name, 'length', this.#total, state.length);
    if ((state.seed === null) !== (this.#seed === null)) {
      throw badState(
        name,
        'seed',
        this.#seed === null ? 'null (fixed order)' : 'a number (shuffled)',
        state.seed,
      );
    }
    if (state.seed !== null) checkStateNumber(name, 'seed', state.seed, Number.MAX_SAFE_INTEGER);
    checkStateNumber(name, 'epoch', state.epoch, Number.MAX_SAFE_INTEGER);
    checkStateNumber(name, 'consumed', state.consumed, this.#total);
    this.#seed = state.seed;
    this.#epoch = state.epoch;
    this.#consumed = state.consumed;
    this.#repetitions = 0;
    this.#isPassAhead = true;
  }

  #moveTo(epoch: number): void {
    if (!this.#isPassAhead || epoch !== this.#epoch) this.#consumed = 0;
    this.#epoch = epoch;
    this.#isPassAhead = true;
  }

  /** Warns, unless the program calls setEpoch() and passes twice, as it does if it evaluates on its training data. */
  #noteRepetition(): void {
    this.#repetitions++;
    if (this.#repetitions > (this.#isTold ? 1 : 0)) warnOfRepetition(this);
  }

  #share(positions: number): number {
    const share = positions / this.#replicas;
    return this.#dropLast ? Math.floor(share) : Math.ceil(share);
  }

  static {
    refuseForeign(EpochSampler.prototype, 'sampler', unknownOptions, foreignSamplerMembers);
  }
}

/** Throws unless `state` is an object. */
export function checkState(sampler: string, state: unknown): void {
  if (typeof state !== 'object' || state === null) throw notAState(sampler, state);
}

const warned = new WeakSet<EpochSampler>();

/** Warns once per sampler. */
function warnOfRepetition(sampler: EpochSampler): void {
  if (warned.has(sampler)) return;
  warned.add(sampler);
  process.emitWarning(
    `${sampler.constructor.name}: a pass without setEpoch(epoch) has the same order as the pass before. Call it before each epoch.`,
    { type: 'RingwiseWarning', code: 'RINGWISE_SET_EPOCH' },
  );
}

function checkStateNumber(sampler: string, what: string, value: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= 0 && value <= most) return;
  throw badState(sampler, what, `an integer from 0 to ${most}`, value);
}
