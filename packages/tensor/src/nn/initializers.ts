// Writes initial values into tensors, in place and without recording gradients. Names of functions that write in place
// end in _. Distributions and defaults are those of torch.nn.init.

import { numbersByPosition } from '../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import {
  aGenerator,
  anyNumber,
  anything,
  checkValue,
  finite,
  nonNegative,
  oneOf,
  positive,
} from '../checks/value-checks.ts';
import { noGrad, scope } from '../core/context.ts';
import { fromHost } from '../core/creation.ts';
import { countOf, type Shape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { badOption, needsRank, shown } from '../errors.ts';
import { requireTensor } from '../ops/elementwise/convert.ts';
import { type RandomOptions, rand, randn } from '../random/random-tensors.ts';

type Random = Pick<RandomOptions, 'generator'>;

const randomChecks = { generator: aGenerator };
const randomOptions = optionChecks<Random>(randomChecks);

/** Returns only the generator option of options that may have others. */
const randomOf = ({ generator }: Random): Random => (generator === undefined ? {} : { generator });

/** Writes `values()` over the tensor's elements. Returns the tensor. */
const written = (tensor: Tensor, values: () => Tensor | number): Tensor =>
  noGrad(() => scope(() => tensor.copy_(values())));

/** Returns the sizes of the tensor that `op` writes. Throws unless it is a tensor. */
function shapeOf(op: string, tensor: Tensor): Shape {
  requireTensor(op, tensor);
  return tensor.shape;
}

/** Writes one value into all elements. */
export const constant_ = (tensor: Tensor, value: number): Tensor => filled('constant_', tensor, value);
/** Writes zeros into all elements. */
export const zeros_ = (tensor: Tensor): Tensor => filled('zeros_', tensor, 0);
/** Writes ones into all elements. */
export const ones_ = (tensor: Tensor): Tensor => filled('ones_', tensor, 1);

function filled(op: string, tensor: Tensor, value: number): Tensor {
  requireTensor(op, tensor);
  checkValue(`${op}: value`, value, anyNumber);
  return written(tensor, () => value);
}

/** Writes ones on the diagonal of a matrix and zeros elsewhere. */
export function eye_(tensor: Tensor): Tensor {
  const [rows, cols] = matrixOf('eye_', shapeOf('eye_', tensor));
  const values = new Float32Array(rows * cols);
  for (let i = 0; i < Math.min(rows, cols); i++) values[i * cols + i] = 1;
  return written(tensor, () => fromHost(values, [rows, cols]));
}

function checkRange(op: string, low: number, high: number): void {
  if (!(low <= high)) throw badOption(`${op}: high`, `a number ≥ ${low}, the lower limit`, shown(high));
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** Draws uniformly from [low, high), by default [0, 1). */
export function uniform_(tensor: Tensor, low = 0, high = 1, options: Random = {}): Tensor {
  requireTensor('uniform_', tensor);
  if (isObject(low))
    throw numbersByPosition('uniform_', 'uniform_(tensor, -0.1, 0.1), lower limit and upper limit');
  checkValue('uniform_: low', low, finite);
  checkValue('uniform_: high', high, finite);
  checkRange('uniform_', low, high);
  checkOptions('uniform_', options, randomOptions);
  return written(tensor, () =>
    rand(tensor.shape, options)
      .mul(high - low)
      .add(low),
  );
}

/** Draws from a normal distribution, by default with mean 0 and standard deviation 1. */
export function normal_(tensor: Tensor, mean = 0, std = 1, options: Random = {}): Tensor {
  requireTensor('normal_', tensor);
  if (isObject(mean))
    throw numbersByPosition('normal_', 'normal_(tensor, 0, 0.02), mean and standard deviation');
  checkValue('normal_: mean', mean, finite);
  checkValue('normal_: std', std, nonNegative);
  checkOptions('normal_', options, randomOptions);
  return written(tensor, () => randn(tensor.shape, options).mul(std).add(mean));
}

/** Options of truncNormal_(). */
export interface TruncNormalOptions extends Random {
  /** Default 0. */
  readonly mean?: number;
  /** Default 1. */
  readonly std?: number;
  /** Minimum value. Default −2. */
  readonly low?: number;
  /** The greatest value. Default 2. */
  readonly high?: number;
}

const truncNormalOptions = optionChecks<TruncNormalOptions>({
  ...randomChecks,
  mean: finite,
  std: positive,
  low: finite,
  high: finite,
});

/** Draws from a normal distribution that is truncated to a range. */
export function truncNormal_(tensor: Tensor, options: TruncNormalOptions = {}): Tensor {
  requireTensor('truncNormal_', tensor);
  checkOptions('truncNormal_', options, truncNormalOptions);
  const { mean = 0, std = 1, low = -2, high = 2 } = options;
  checkRange('truncNormal_', low, high);
  const [from, to] = [distribution((low - mean) / std), distribution((high - mean) / std)];
  return written(tensor, () => {
    const shares = rand(tensor.shape, randomOf(options)).dataSync() as Float32Array;
    const values = shares.map((share) => {
      const value = mean + std * quantile(from + share * (to - from));
      return Math.min(high, Math.max(low, value));
    });
    return fromHost(values, tensor.shape);
  });
}

/** Returns the probability that a standard normal variable is below x. */
function distribution(x: number): number {
  // Integrates from 0 by Simpson's rule; more than enough for float32.
  const steps = 2 * Math.ceil(50 * Math.min(Math.abs(x), 9)) + 2;
  const end = Math.max(-9, Math.min(9, x));
  const density = (t: number): number => Math.exp((-t * t) / 2) / Math.sqrt(2 * Math.PI);
  let sum = density(0) + density(end);
  for (let i = 1; i < steps; i++) sum += (i % 2 === 1 ? 4 : 2) * density((end * i) / steps);
  return 0.5 + (sum * end) / steps / 3;
}

/**
 * Returns the quantile of the standard normal distribution, with the accuracy of float32: √2 times the inverse of the
 * error function, by Giles (2010).
 */
function quantile(share: number): number {
  const x = 2 * share - 1;
  if (Math.abs(x) >= 1) return x * Infinity;
  let w = -Math.log((1 - x) * (1 + x));
  const isCentral = w < 5;
  w = isCentral ? w - 2.5 : Math.sqrt(w) - 3;
  const factors = isCentral ? central : tail;
  return Math.SQRT2 * x * factors.reduce((sum, factor) => sum * w + factor, 0);
}
const central = [
  ...[2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 2.1858087e-4],
  ...[-1.25372503e-3, -4.17768164e-3, 0.246640727, 1.50140941],
];
const tail = [
  ...[-2.00214257e-4, 1.00950558e-4, 1.34934322e-3, -3.67342844e-3, 5.73950773e-3],
  ...[-7.6224613e-3, 9.43887047e-3, 1.00167406, 2.83297682],
];

/** Returns the sizes of a tensor as a matrix: the first dimension, and all others together. */
function matrixOf(op: string, shape: Shape): [rows: number, cols: number] {
  if (shape.length < 2) throw needsRank(op, 'at least 2', shape);
  return [shape[0]!, countOf(shape.slice(1))];
}

/**
 * Returns the numbers of inputs and outputs of a unit, from the shape of its weight [out, in, …]. Sizes after the
 * second are those of a convolution's kernel, and multiply both. Both are 0 for some tensors without elements.
 */
function fans(op: string, shape: Shape): { fanIn: number; fanOut: number } {
  const [rows, cols] = matrixOf(op, shape);
  return { fanIn: cols, fanOut: rows * countOf(shape.slice(2)) };
}

/** A nonlinearity that calculateGain() knows. */
export type Nonlinearity = 'linear' | 'sigmoid' | 'tanh' | 'relu' | 'leakyRelu' | 'selu';

/**
 * Returns torch's recommended factor for a nonlinearity, by which standard deviations of weights are multiplied.
 * `slope` is that of leakyRelu below 0, default 0.01.
 */
export function calculateGain(nonlinearity: Nonlinearity, slope = 0.01): number {
  checkValue('calculateGain: slope', slope, finite);
  const gains = {
    ...{ linear: 1, sigmoid: 1, tanh: 5 / 3, relu: Math.SQRT2, selu: 3 / 4 },
    leakyRelu: Math.sqrt(2 / (1 + slope ** 2)),
  };
  const isKnown = typeof nonlinearity === 'string' && Object.hasOwn(gains, nonlinearity);
  const gain = isKnown ? gains[nonlinearity] : undefined;
  if (gain === undefined)
    throw badOption('calculateGain: nonlinearity', Object.keys(gains).join(', '), shown(nonlinearity));
  return gain;
}

/** Options of xavierUniform_(), xavierNormal_() and orthogonal_(). */
export interface XavierOptions extends Random {
  /** Default 1. */
  readonly gain?: number;
}

const gainOptions = optionChecks<XavierOptions>({ ...randomChecks, gain: finite });

function xavierStd(op: string, tensor: Tensor, options: XavierOptions): number {
  checkOptions(op, options, gainOptions);
  const { gain = 1 } = options;
  const { fanIn, fanOut } = fans(op, shapeOf(op, tensor));
  return gain * Math.sqrt(2 / Math.max(1, fanIn + fanOut));
}

/** Draws uniformly from ±gain × √(6 ÷ (fanIn + fanOut)) (Glorot). */
export function xavierUniform_(tensor: Tensor, options: XavierOptions = {}): Tensor {
  const bound = Math.sqrt(3) * xavierStd('xavierUniform_', tensor, options);
  return uniform_(tensor, -bound, bound, randomOf(options));
}

/** Draws from a normal distribution with standard deviation gain × √(2 ÷ (fanIn + fanOut)) (Glorot). */
export function xavierNormal_(tensor: Tensor, options: XavierOptions = {}): Tensor {
  return normal_(tensor, 0, Math.abs(xavierStd('xavierNormal_', tensor, options)), randomOf(options));
}

/** Options of kaimingUniform_() and kaimingNormal_(). */
export interface KaimingOptions extends Random {
  /** The slope of leakyRelu below 0; other nonlinearities ignore it. Default 0. */
  readonly a?: number;
  /** Whether to keep variances equal in the forward pass (fanIn, the default) or in the backward pass. */
  readonly mode?: 'fanIn' | 'fanOut';
  /** Default 'leakyRelu'. */
  readonly nonlinearity?: Nonlinearity;
}

const kaimingOptions = optionChecks<KaimingOptions>({
  ...randomChecks,
  a: finite,
  mode: oneOf('fanIn', 'fanOut'),
  nonlinearity: anything,
});

function kaimingStd(op: string, tensor: Tensor, options: KaimingOptions): number {
  checkOptions(op, options, kaimingOptions);
  const { a = 0, mode = 'fanIn', nonlinearity = 'leakyRelu' } = options;
  return calculateGain(nonlinearity, a) / Math.sqrt(Math.max(1, fans(op, shapeOf(op, tensor))[mode]));
}

/** Draws uniformly from ±gain × √(3 ÷ fan), with the gain of the nonlinearity and the fan of `mode` (He). */
export function kaimingUniform_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingStd('kaimingUniform_', tensor, options);
  return uniform_(tensor, -bound, bound, randomOf(options));
}

/** Draws from a normal distribution with standard deviation gain ÷ √fan, as kaimingUniform_ (He). */
export function kaimingNormal_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  return normal_(tensor, 0, kaimingStd('kaimingNormal_', tensor, options), randomOf(options));
}

/**
 * Writes a matrix whose rows (or columns, if there are fewer of them) are orthogonal and have length `gain`
 * (default 1). Dimensions after the first count together as the columns.
 */
export function orthogonal_(tensor: Tensor, options: XavierOptions = {}): Tensor {
  checkOptions('orthogonal_', options, gainOptions);
  const [rows, cols] = matrixOf('orthogonal_', shapeOf('orthogonal_', tensor));
  const isWide = rows <= cols;
  const [count, size] = isWide ? [rows, cols] : [cols, rows];
  return written(tensor, () => {
    const noise = randn([count, size], randomOf(options)).dataSync();
    const vectors = orthonormal(Float64Array.from(noise as Float32Array), count, size);
    const matrix = fromHost(vectors, [count, size]).mul(options.gain ?? 1);
    return (isWide ? matrix : matrix.t()).reshape(tensor.shape);
  });
}

/**
 * Orthonormalises vectors in place (Gram–Schmidt). Subtracts the projections on earlier vectors twice,
 * because rounding leaves an error the first time.
 */
function orthonormal(values: Float64Array, count: number, size: number): Float64Array {
  const vector = (i: number): Float64Array => values.subarray(i * size, (i + 1) * size);
  const dot = (a: Float64Array, b: Float64Array): number => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
  for (let i = 0; i < count; i++) {
    const own = vector(i);
    for (let round = 0; round < 2; round++) {
      for (let j = 0; j < i; j++) {
        const other = vector(j);
        const along = dot(own, other);
        for (let c = 0; c < size; c++) own[c]! -= along * other[c]!;
      }
    }
    const length = Math.sqrt(dot(own, own));
    for (let c = 0; c < size; c++) own[c]! /= length;
  }
  return values;
}
