// Samplers for a single process. Each pass of a shuffling sampler is the next epoch, with a new order; with the same
// seed, pass k has the same order in every run.

import { checkArrayLike, checkCount, checkInteger, checkLength } from '../check.ts';
import { nothingThere, outOfRange } from '../errors.ts';
import { checkedOptions, checkFlag, optionNames } from '../options.ts';
import { EpochSampler } from './epoch-sampler.ts';
import { identityPermutation, longestPermutation, Mt19937, randperm, shuffle } from './random.ts';

/** Yields 0, 1, …, length − 1 in every pass. */
export class SequentialSampler extends EpochSampler {
  readonly #count: number;

  constructor(length: number) {
    checkCount('SequentialSampler', length, 0);
    super(length, { seed: null, advancesByItself: false });
    this.#count = length;
  }

  protected override order(): Int32Array {
    return identityPermutation(this.#count);
  }
}

/** Option of samplers that draw random orders. */
export interface SeedOption {
  /** Seed of the orders. Default 0: every run uses the same orders. */
  readonly seed?: number;
}

const seedNames = optionNames<SeedOption>({ seed: true });

/** Options of RandomSampler. */
export interface RandomSamplerOptions extends SeedOption {
  /** Whether an index may be drawn again before all others have been drawn. Default false. */
  readonly replacement?: boolean;
  /** Number of indices of an epoch. Beyond `length`, without replacement, more permutations follow. Default length. */
  readonly numSamples?: number;
}

const randomNames = optionNames<RandomSamplerOptions>({ seed: true, replacement: true, numSamples: true });

/**
 * Yields a new permutation in each epoch: `torch.randperm` seeded with seed + epoch; or with `replacement` numbers of
 * `torch.randint`. These are the indices of torch's RandomSampler with such a generator.
 */
export class RandomSampler extends EpochSampler {
  readonly #count: number;
  readonly #draws: number;
  readonly #replacement: boolean;

  constructor(length: number, options?: RandomSamplerOptions) {
    const given = checkedOptions('RandomSampler', options, randomNames);
    const { seed = 0, replacement = false, numSamples = length } = given;
    checkFlag('RandomSampler: replacement', replacement);
    checkLength('RandomSampler', length, longestPermutation);
    checkInteger('RandomSampler: numSamples', numSamples, 1, 2 ** 31 - 1);
    super(numSamples, { seed, advancesByItself: true });
    this.#count = length;
    this.#draws = numSamples;
    this.#replacement = replacement;
  }

  protected override order(seed: number): Int32Array {
    const [count, draws] = [this.#count, this.#draws];
    if (draws === count && !this.#replacement) return randperm(count, seed);
    const random = new Mt19937(seed);
    const order = new Int32Array(draws);
    if (this.#replacement) return order.map(() => random.uint32() % count);
    for (let at = 0; at < draws; at += count)
      order.set(shuffle(identityPermutation(count), random).subarray(0, draws - at), at);
    return order;
  }
}

/** Yields the given indices (kept, not copied) in a new permutation in each epoch. */
export class SubsetRandomSampler extends EpochSampler {
  readonly #indices: ArrayLike<number>;

  constructor(indices: ArrayLike<number>, options?: SeedOption) {
    const { seed = 0 } = checkedOptions('SubsetRandomSampler', options, seedNames);
    checkArrayLike('SubsetRandomSampler: indices', indices);
    checkLength('SubsetRandomSampler', indices.length, longestPermutation);
    for (let i = 0; i < indices.length; i++)
      checkInteger(`SubsetRandomSampler: indices[${i}]`, indices[i]!, 0, 2 ** 31 - 1);
    super(indices.length, { seed, advancesByItself: true });
    this.#indices = indices;
  }

  protected override order(seed: number): Int32Array {
    return randperm(this.#indices.length, seed).map((position) => this.#indices[position]!);
  }
}

/** Options of WeightedRandomSampler. */
export interface WeightedRandomSamplerOptions {
  /** Whether an index may be drawn more than once in an epoch. Default true. */
  readonly replacement?: boolean;
  /** Seed of the orders. Default 0: every run uses the same orders. */
  readonly seed?: number;
}

const weightedNames = optionNames<WeightedRandomSamplerOptions>({ replacement: true, seed: true });

/**
 * Yields `count` indices per epoch, drawn with probability proportional to `weights` (kept, not copied), whose sum need
 * not be 1. torch's WeightedRandomSampler draws other indices.
 */
export class WeightedRandomSampler extends EpochSampler {
  readonly #weights: ArrayLike<number>;
  readonly #draws: number;
  readonly #replacement: boolean;

  constructor(weights: ArrayLike<number>, count: number, options?: WeightedRandomSamplerOptions) {
    const { replacement = true, seed = 0 } = checkedOptions('WeightedRandomSampler', options, weightedNames);
    checkFlag('WeightedRandomSampler: replacement', replacement);
    checkArrayLike('WeightedRandomSampler: weights', weights);
    const positive = countPositive(weights);
    checkInteger('WeightedRandomSampler: count', count, 1, replacement ? 2 ** 31 - 1 : positive);
    super(count, { seed, advancesByItself: true });
    this.#weights = weights;
    this.#draws = count;
    this.#replacement = replacement;
  }

  protected override order(seed: number): Int32Array {
    const random = new Mt19937(seed);
    const draw = this.#replacement ? drawWithReplacement : drawWithoutReplacement;
    return draw(scaled(this.#weights), this.#draws, random);
  }
}

function countPositive(weights: ArrayLike<number>): number {
  let positive = 0;
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]!;
    if (typeof weight !== 'number' || !(weight >= 0 && weight < Infinity)) {
      throw outOfRange(`WeightedRandomSampler: weight ${i}`, 'a finite number of at least 0', weight);
    }
    if (weight > 0) positive++;
  }
  if (positive === 0) throw nothingThere('WeightedRandomSampler: weights', 'at least one above 0');
  return positive;
}

/** Returns the weights, divided by the largest one if their sum could overflow, or quotients of them lose digits. */
function scaled(weights: ArrayLike<number>): ArrayLike<number> {
  let most = 0;
  for (let i = 0; i < weights.length; i++) most = Math.max(most, weights[i]!);
  return most > 1e-250 && most < 1e250 ? weights : Float64Array.from(weights, (weight) => weight / most);
}

function drawWithReplacement(weights: ArrayLike<number>, count: number, random: Mt19937): Int32Array {
  const upTo = new Float64Array(weights.length); // upTo[i] is the sum of weights 0 … i
  let sum = 0;
  for (let i = 0; i < weights.length; i++) upTo[i] = sum += weights[i]!;
  return new Int32Array(count).map(() => {
    const target = random.float64() * sum;
    let low = 0;
    let high = upTo.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (upTo[middle]! > target) high = middle;
      else low = middle + 1;
    }
    return low;
  });
}

// Efraimidis & Spirakis, "Weighted random sampling with a reservoir", 2006: the smallest keys −ln(u) / weight
// are chosen, and their order is the order of drawing.
function drawWithoutReplacement(weights: ArrayLike<number>, count: number, random: Mt19937): Int32Array {
  const keys = Float64Array.from(weights, (weight) => -Math.log(1 - random.float64()) / weight);
  const candidates = identityPermutation(keys.length).filter((i) => weights[i]! > 0);
  return candidates.sort((a, b) => keys[a]! - keys[b]!).slice(0, count);
}
