// Reductions that are made of others. Intermediate tensors are disposed at once; the tape keeps what it needs.
import { scope } from '../context.ts';
import { badOption } from '../errors.ts';
import { dimMask, reducedShape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { add, div, eq, pow, sub } from './binary.ts';
import { where } from './choose.ts';
import { requireFloat } from './convert.ts';
import { type Dims, max, mean, reducedCount, sum } from './reduce.ts';
import { abs, exp, log, sqrt, square } from './unary.ts';
import { reshape } from './views.ts';

export interface VarianceOptions {
  /** What is taken off the number of elements: 1 (default) for a sample, 0 for a whole population. */
  readonly correction?: number;
  readonly keepDim?: boolean;
}

/** The variance: the mean of squared distances from the mean. */
export function variance(a: Tensor, dims?: Dims, options: VarianceOptions = {}): Tensor {
  requireFloat('variance', a);
  const { correction = 1, keepDim = false } = options;
  const middle = mean(a, dims, true);
  const distance = sub(a, middle);
  const squares = square(distance);
  const total = sum(squares, dims, keepDim);
  const out = div(total, Math.max(0, reducedCount('variance', a, dims) - correction));
  for (const tensor of [middle, distance, squares, total]) tensor.dispose();
  return out;
}

/** The standard deviation: the root of the variance. */
export function std(a: Tensor, dims?: Dims, options: VarianceOptions = {}): Tensor {
  const squared = variance(a, dims, options);
  const out = sqrt(squared);
  squared.dispose();
  return out;
}

/** log Σ exp a, without overflow. */
export function logSumExp(a: Tensor, dims: Dims, keepDim = false): Tensor {
  requireFloat('logSumExp', a);
  const shape = reducedShape(a.shape, dimMask('logSumExp', dims, a.rank), keepDim);
  return scope(() => {
    const top = max(a.detach(), dims, true);
    // An infinite maximum would leave NaN; anything finite will do there.
    const shift = where(eq(sub(top, top), 0), top, 0);
    return reshape(add(log(sum(exp(sub(a, shift)), dims, true)), shift), shape);
  });
}

/** The variance and the mean, as [variance, mean]. */
export function varMean(a: Tensor, dims?: Dims, options: VarianceOptions = {}): [Tensor, Tensor] {
  return [variance(a, dims, options), mean(a, dims, options.keepDim ?? false)];
}

export interface NormOptions {
  /** 2 (default), 1, any number > 0, or Infinity for the largest magnitude. */
  readonly p?: number;
  readonly keepDim?: boolean;
}

/** (Σ |a|^p)^(1/p). The gradient of a vector of zeros is 0. */
export function norm(a: Tensor, dims?: Dims, options: NormOptions = {}): Tensor {
  requireFloat('norm', a);
  const { p = 2, keepDim = false } = options;
  if (!(p > 0)) throw badOption('norm: p', 'a number > 0', p);
  return scope(() => {
    if (p === Infinity) return max(abs(a), dims, keepDim);
    if (p === 1) return sum(abs(a), dims, keepDim);
    const total = sum(p === 2 ? square(a) : pow(abs(a), p), dims, keepDim);
    const isZero = eq(total, 0);
    const some = where(isZero, 1, total);
    return where(isZero, 0, p === 2 ? sqrt(some) : pow(some, 1 / p));
  });
}
