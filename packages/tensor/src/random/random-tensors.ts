// Makes tensors of random numbers. The numbers depend only on the generator's seed and position (random.ts), so they
// are equal with every kernel set and on every device; only normal numbers may differ in the last bit.

import type { RandomKind } from '../backends/declarations/names.ts';
import { kernels } from '../backends/index.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aGenerator, anything, flag } from '../checks/value-checks.ts';
import { scope } from '../core/context.ts';
import { checkedShape, type Shape } from '../core/shape.ts';
import { empty, type Tensor } from '../core/tensor.ts';
import { type DeviceName, deviceOf } from '../device/device.ts';
import { badOption, badWeights, needsRank, shown } from '../errors.ts';
import { requireFloat } from '../ops/elementwise/convert.ts';
import { add, div, log, lt, max, min, neg, sort, to, topk } from '../ops/index.ts';
import { defaultGenerator, type Generator } from './random.ts';

/** Option of functions that draw random numbers. */
export interface GeneratorOption {
  /** Default: the generator that manualSeed seeds. */
  readonly generator?: Generator;
}

/** Options of functions that make random tensors. */
export interface DrawOptions extends GeneratorOption {
  /** Default: 'cpu'. The numbers are the same on every device, except that normal ones may differ in the last bit. */
  readonly device?: DeviceName;
}

/** Options of rand(), randn() and other functions that draw floats. */
export interface RandomOptions extends DrawOptions {
  /** Whether the tensor requires a gradient. Default false. */
  readonly requiresGrad?: boolean;
}

const generatorOptions = optionChecks<GeneratorOption>({ generator: aGenerator });
const drawChecks = { generator: aGenerator, device: anything };
const drawOptions = optionChecks<DrawOptions>(drawChecks);
const randomOptions = optionChecks<RandomOptions>({ ...drawChecks, requiresGrad: flag });

/** Makes a tensor of random numbers: float32 for uniform and normal ones, int64 for others. */
function drawn(kind: RandomKind, shape: Shape, low: number, high: number, options: DrawOptions): Tensor {
  const isFloat = kind === 'uniform' || kind === 'normal';
  const out = empty(isFloat ? 'float32' : 'int64', shape, deviceOf(options.device ?? 'cpu'));
  const stream = (options.generator ?? defaultGenerator()).take(kind === 'bits' ? 2 * out.count : out.count);
  kernels().random({ out: out.strided }, { kind, count: out.count, stream, low, high });
  return out;
}

function floats(op: string, kind: RandomKind, shape: Shape, high: number, options: RandomOptions): Tensor {
  checkOptions(op, options, randomOptions);
  const tensor = drawn(kind, checkedShape(op, shape), 0, high, options);
  if (options.requiresGrad) tensor.requiresGrad = true;
  return tensor;
}

/** Returns uniform numbers in [0, 1), float32. */
export const rand = (shape: Shape, options: RandomOptions = {}): Tensor =>
  floats('rand', 'uniform', shape, 1, options);

/** Returns normal numbers with mean 0 and variance 1, float32. */
export const randn = (shape: Shape, options: RandomOptions = {}): Tensor =>
  floats('randn', 'normal', shape, 0, options);

/** Returns int64 numbers from low … high − 1, all equally likely. high − low is at most 2^32. */
export function randint(low: number, high: number, shape: Shape, options: DrawOptions = {}): Tensor {
  checkOptions('randint', options, drawOptions);
  const isRange =
    Number.isSafeInteger(low) && Number.isSafeInteger(high) && low < high && high - low <= 2 ** 32;
  if (!isRange)
    throw badOption(
      'randint: low and high',
      'integers with 0 < high − low ≤ 2^32',
      `${shown(low)}, ${shown(high)}`,
    );
  return drawn('integers', checkedShape('randint', shape), low, high, options);
}

/** Returns the numbers 0 … count − 1 in random order, int64. */
export function randperm(count: number, options: DrawOptions = {}): Tensor {
  checkOptions('randperm', options, drawOptions);
  const keys = drawn('bits', checkedShape('randperm', [count]), 0, 0, options);
  const { values, indices } = sort(keys);
  values.dispose();
  keys.dispose();
  return indices;
}

/**
 * Returns 1 with the probability in each element of `probabilities`, else 0, with its shape and dtype. Throws if one of
 * them is not in [0, 1]; on a device, where the host would have to wait for them, they are not checked.
 */
export function bernoulli(probabilities: Tensor, options: GeneratorOption = {}): Tensor {
  requireFloat('bernoulli', probabilities);
  checkOptions('bernoulli', options, generatorOptions);
  if (probabilities.device === 'cpu' && probabilities.count > 0) checkProbabilities(probabilities.detach());
  const uniform = drawn('uniform', probabilities.shape, 0, 1, { ...options, device: probabilities.device });
  const isDrawn = lt(uniform, probabilities);
  const out = to(isDrawn, probabilities.dtype);
  uniform.dispose();
  isDrawn.dispose();
  return out;
}

function checkProbabilities(probabilities: Tensor): void {
  const [least, most] = scope(() => [min(probabilities).item(), max(probabilities).item()] as const);
  probabilities.dispose();
  // The extremes of numbers of which one is NaN are NaN.
  if (!(least >= 0 && most <= 1))
    throw badOption('bernoulli: probabilities', 'numbers from 0 to 1', shown(least >= 0 ? most : least));
}

/** Options of multinomial(). */
export interface MultinomialOptions extends GeneratorOption {
  /** Whether an index may be drawn again. Default false. */
  readonly replacement?: boolean;
}

const multinomialOptions = optionChecks<MultinomialOptions>({ generator: aGenerator, replacement: flag });

/**
 * Draws `count` indices from each row of weights [n] or [rows, n], in proportion to the weights, which need not add up
 * to 1. Returns int64 [count] or [rows, count]. Waits for the weights, which the host checks.
 */
export function multinomial(weights: Tensor, count: number, options: MultinomialOptions = {}): Tensor {
  requireFloat('multinomial', weights);
  checkOptions('multinomial', options, multinomialOptions);
  if (weights.rank !== 1 && weights.rank !== 2)
    throw needsRank('multinomial: weights', '1 or 2', weights.shape);
  if (!Number.isSafeInteger(count) || count < 1)
    throw badOption('multinomial: count', 'an integer ≥ 1', shown(count));
  const wide = to(weights.detach(), 'float64');
  const needed = options.replacement ? 1 : count;
  const cols = weights.shape.at(-1)!;
  const values = wide.dataSync() as Float64Array;
  for (let at = 0; at < values.length || at === 0; at += Math.max(1, cols)) {
    const row = values.subarray(at, at + cols);
    const odd = row.find((x) => !(x >= 0 && x < Infinity));
    if (odd !== undefined) throw badWeights(needed, `the weight ${odd}`);
    const drawable = row.reduce((n, x) => n + Number(x > 0), 0);
    if (drawable < needed) throw badWeights(needed, `a row with ${drawable}`);
  }
  const out = options.replacement
    ? withReplacement(wide, values, count, options)
    : without(wide, count, options);
  wide.dispose();
  return out;
}

/**
 * Draws without replacement: the indices of the largest values of weight ÷ Exp(1) are a draw in proportion to
 * the weights. Exp(1) is an exponentially distributed number with mean 1.
 */
function without(weights: Tensor, count: number, options: GeneratorOption): Tensor {
  const uniform = drawn('uniform', weights.shape, 0, 1, { ...options, device: weights.device });
  // Uniform numbers in (0, 1), as float64: adding 2^-25 gives the middle of each interval of length 2^-24.
  const steps = [(a: Tensor) => to(a, 'float64'), (a: Tensor) => add(a, 2 ** -25), log, neg];
  const waiting = steps.reduce((a, step) => {
    const next = step(a);
    a.dispose();
    return next;
  }, uniform);
  const keys = div(weights, waiting);
  const { values, indices } = topk(keys, count);
  for (const tensor of [waiting, keys, values]) tensor.dispose();
  return indices;
}

/** Returns the first index of a number above `bound` in `rising` numbers, or their count if there is none. */
function firstAbove(rising: Float64Array, bound: number): number {
  let [low, high] = [0, rising.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rising[middle]! > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Draws with replacement: the first index at which the running sum of the weights exceeds a random share of
 * their total.
 */
function withReplacement(
  weights: Tensor,
  values: Float64Array,
  count: number,
  options: GeneratorOption,
): Tensor {
  const cols = weights.shape.at(-1)!;
  const uniform = drawn('uniform', weights.shape.with(-1, count), 0, 1, options);
  const parts = uniform.dataSync() as Float32Array;
  const out = empty('int64', uniform.shape);
  const indices = out.memory.host as BigInt64Array;
  const sums = new Float64Array(cols);
  for (let first = 0; first < parts.length; first += count) {
    const row = values.subarray((first / count) * cols, (first / count + 1) * cols);
    let total = 0;
    for (let j = 0; j < cols; j++) sums[j] = total += row[j]!;
    const last = row.findLastIndex((weight) => weight > 0);
    for (let i = first; i < first + count; i++)
      indices[i] = BigInt(Math.min(last, firstAbove(sums, parts[i]! * total)));
  }
  uniform.dispose();
  if (weights.device === 'cpu') return out;
  const there = to(out, weights.device);
  out.dispose();
  return there;
}
