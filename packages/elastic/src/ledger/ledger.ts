// Assigns samples to steps and ranks. The assignment is a function of the seed, the position and the number of ranks,
// so ranks agree without a message. A position is an index into an epoch's order of samples; the cursor is the position
// up to which final steps have used samples. It moves only when a step is final, so a step that is repeated in another
// view has the same samples, assigned to other ranks. There is no padding: the last step of an epoch may have fewer
// samples, and ranks without samples have weight 0 in it.
import { randperm } from '@ringwise/data';
import { checkInteger, checkOptions, shown } from '../check.ts';
import { invalidArgument } from '../errors.ts';

/** Options for the order of the samples of an epoch, and their assignment to steps and ranks. */
export interface LedgerOptions {
  /** Number of samples of a step, over all ranks; a multiple of `microBatch`. Excludes `batchPerRank`. */
  readonly globalBatch?: number;
  /** Number of samples of one forward and backward. Required with `globalBatch`. */
  readonly microBatch?: number;
  /** Number of samples of a step on each rank, instead of a global batch: a step has more samples on more ranks. */
  readonly batchPerRank?: number;
  /** Whether each epoch has a random order, the same as that of DistributedSampler for this seed. Default true. */
  readonly shuffle?: boolean;
  /** Seed of the orders, and of the random numbers of steps. Default 0. */
  readonly seed?: number;
  /** Returns the order of an epoch, instead of `shuffle`: indices of samples, the same on all ranks. */
  readonly order?: (epoch: number) => ArrayLike<number>;
}

export const ledgerOptionNames: readonly (keyof LedgerOptions)[] = [
  'globalBatch',
  'microBatch',
  'batchPerRank',
  'shuffle',
  'seed',
  'order',
];

/** The position where the next step begins. Plain JSON. */
export interface Cursor {
  /** Number of the epoch, from 0 on. */
  readonly epoch: number;
  /** Number of steps of this epoch that are final. */
  readonly step: number;
  /** Number of samples of this epoch that final steps have used. */
  readonly position: number;
}

/** Samples of one forward and backward: positions `start` to `end` − 1 of the epoch's order. */
export interface MicroBatch {
  /** Number of the epoch, from 0 on. */
  readonly epoch: number;
  /** Index of the step in the epoch. */
  readonly step: number;
  /** Index among the micro-batches of the step. */
  readonly index: number;
  /** First position in the epoch's order. */
  readonly start: number;
  /** Position after the last one. */
  readonly end: number;
  /**
   * False if a rank runs the micro-batch of another rank, only to take part in exchanges of batch norms over all ranks.
   * Its loss and gradients are ignored.
   */
  readonly counts?: false;
}

/** The samples of one step. */
export interface StepPlan {
  readonly epoch: number;
  readonly step: number;
  readonly start: number;
  readonly end: number;
  readonly microBatches: readonly MicroBatch[];
}

export const firstCursor: Cursor = { epoch: 0, step: 0, position: 0 };

/** The rules that assign the samples of a data set of `length` samples to steps and ranks. */
export class Ledger {
  readonly length: number;
  readonly seed: number;
  /** Number of samples of a whole micro-batch. */
  readonly microBatch: number;
  readonly #globalBatch: number | null;
  readonly #shuffle: boolean;
  readonly #custom: ((epoch: number) => ArrayLike<number>) | null;
  /** Cache of the orders of the last epochs; two are in use when loading ahead reaches into the next epoch. */
  readonly #orders = new Map<number, ArrayLike<number>>();

  /** Throws ERR_ELASTIC_INVALID for options that do not fit. */
  constructor(length: number, options: LedgerOptions) {
    checkOptions('loader', options, ledgerOptionNames);
    const { globalBatch, microBatch, batchPerRank, shuffle = true, seed = 0, order } = options;
    checkInteger('loader: length of the data set', length, 1);
    checkInteger('loader: seed', seed, 0);
    if (typeof shuffle !== 'boolean')
      throw invalidArgument('loader: shuffle', 'true or false', shown(shuffle));
    if (order !== undefined && typeof order !== 'function')
      throw invalidArgument('loader: order', 'a function that returns the order of an epoch', shown(order));
    const isGlobal = globalBatch !== undefined;
    if (isGlobal === (batchPerRank !== undefined))
      throw invalidArgument(
        'loader',
        'either globalBatch and microBatch, or batchPerRank',
        isGlobal ? 'both' : 'neither',
      );
    if (isGlobal) {
      checkInteger('loader: microBatch', microBatch, 1);
      checkInteger('loader: globalBatch', globalBatch, 1);
      if (globalBatch % microBatch! !== 0)
        throw invalidArgument(
          'loader: globalBatch',
          `a multiple of microBatch, ${microBatch}`,
          shown(globalBatch),
        );
    } else {
      if (microBatch !== undefined)
        throw invalidArgument('loader: microBatch', 'none beside batchPerRank', shown(microBatch));
      checkInteger('loader: batchPerRank', batchPerRank, 1);
    }
    this.length = length;
    this.seed = seed;
    this.microBatch = isGlobal ? microBatch! : batchPerRank!;
    this.#globalBatch = globalBatch ?? null;
    this.#shuffle = shuffle;
    this.#custom = order ?? null;
  }

  /** Number of steps of an epoch on `size` ranks; `size` matters only with batchPerRank. */
  stepsOf(size: number): number {
    return Math.ceil(this.length / (this.#globalBatch ?? size * this.microBatch));
  }

  /** Returns the step that begins at the cursor, on `size` ranks. The cursor must be inside the epoch. */
  stepAt({ epoch, step, position }: Cursor, size: number): StepPlan {
    const end = Math.min(position + (this.#globalBatch ?? size * this.microBatch), this.length);
    const microBatches: MicroBatch[] = [];
    for (let start = position; start < end; start += this.microBatch) {
      const index = microBatches.length;
      microBatches.push({ epoch, step, index, start, end: Math.min(start + this.microBatch, end) });
    }
    return { epoch, step, start: position, end, microBatches };
  }

  /** Returns the cursor once the step is final. */
  after({ epoch, step, end }: StepPlan): Cursor {
    return end < this.length
      ? { epoch, step: step + 1, position: end }
      : { epoch: epoch + 1, step: 0, position: 0 };
  }

  /** Returns the indices of the samples of a micro-batch in the data set. */
  indicesOf({ epoch, start, end }: MicroBatch): number[] {
    const order = this.#orderOf(epoch);
    return Array.from({ length: end - start }, (_, i) => order[start + i]!);
  }

  /** Returns the settings that must be equal on all ranks, as text. */
  get description(): string {
    const batch =
      this.#globalBatch === null
        ? `batchPerRank ${this.microBatch}`
        : `globalBatch ${this.#globalBatch}, microBatch ${this.microBatch}`;
    const order = this.#custom ? 'an order of its own' : this.#shuffle ? 'shuffled' : 'in order';
    return `${this.length} samples, ${batch}, seed ${this.seed}, ${order}`;
  }

  #orderOf(epoch: number): ArrayLike<number> {
    const known = this.#orders.get(epoch);
    if (known !== undefined) return known;
    const order = this.#custom?.(epoch) ?? this.#ownOrder(epoch);
    if (order.length !== this.length)
      throw invalidArgument(
        `loader: order of epoch ${epoch}`,
        `${this.length} indices, one for each sample`,
        `${order.length}`,
      );
    if (this.#orders.size === 2) this.#orders.delete(Math.min(...this.#orders.keys()));
    this.#orders.set(epoch, order);
    return order;
  }

  #ownOrder(epoch: number): ArrayLike<number> {
    if (this.#shuffle) return randperm(this.length, this.seed + epoch);
    return Int32Array.from({ length: this.length }, (_, i) => i);
  }
}

/**
 * Returns micro-batches in the order of training: a short one first, because its gradient has a smaller weight and is
 * divided before the others are added.
 */
export function inTrainingOrder(own: readonly MicroBatch[]): readonly MicroBatch[] {
  const sizeOf = ({ start, end }: MicroBatch) => end - start;
  const [last] = own.slice(-1);
  return own.length > 1 && sizeOf(last!) < sizeOf(own[0]!) ? [last!, ...own.slice(0, -1)] : own;
}

/**
 * Returns the micro-batches of `rank` among `size` ranks: contiguous blocks in rank order, whose lengths differ by at
 * most one. Ranks are ordered by slot, so that the loss of another rank changes few of them.
 */
export function ownedBy(plan: StepPlan, rank: number, size: number): readonly MicroBatch[] {
  const count = plan.microBatches.length;
  return plan.microBatches.slice(Math.ceil((rank * count) / size), Math.ceil(((rank + 1) * count) / size));
}

/**
 * Returns the micro-batches that `rank` runs if each forward needs all ranks: its own ones, preceded by one that does
 * not count if other ranks have one more.
 */
export function runTogether(plan: StepPlan, rank: number, size: number): readonly MicroBatch[] {
  const own = inTrainingOrder(ownedBy(plan, rank, size));
  const [first] = plan.microBatches;
  return own.length < Math.ceil(plan.microBatches.length / size)
    ? [{ ...first!, counts: false }, ...own]
    : own;
}
