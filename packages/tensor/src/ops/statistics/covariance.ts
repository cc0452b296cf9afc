// Covariance and correlation of variables.

import { notIntegerWeights } from '../../checks/op-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { integer, tensorOrNull } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { CovOptions } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, needsRank } from '../../errors.ts';
import { div, eq, ge, mul, sub } from '../elementwise/binary.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireFloat, requireNumbers, requireTensor, to } from '../elementwise/convert.ts';
import { sqrt } from '../elementwise/unary.ts';
import { diagonal } from '../matrix/diagonals.ts';
import { matmul } from '../matrix/matmul.ts';
import { all, mean, sum } from '../reduce/reduce.ts';
import { reshape, t, unsqueeze } from '../shape/views.ts';

const covOptions = optionChecks<CovOptions<Tensor>>({
  correction: integer,
  fweights: tensorOrNull,
  aweights: tensorOrNull,
});

/** Throws unless `weights` has a number ≥ 0 for each observation. The host waits for the weights. */
function checkWeights(name: string, weights: Tensor, observations: number): void {
  if (weights.rank > 1) throw needsRank(name, 'at most 1', weights.shape);
  if (weights.count !== observations) {
    const expected = `one weight for each of ${observations} observations`;
    throw badOption(name, expected, String(weights.count));
  }
  if (noGrad(() => all(ge(weights, 0)).item()) !== 1)
    throw badOption(name, 'weights ≥ 0', 'one below 0, or NaN');
}

/** How observations count. */
interface Weights {
  /** The weight of each observation. */
  readonly each: Tensor;
  readonly total: Tensor;
  /** The sum of the weights after the correction. */
  readonly divisor: Tensor;
}

/** Returns the weights of observations, checked, or null if all count alike. */
function weightsOf(options: CovOptions<Tensor>, observations: number): Weights | null {
  const { correction = 1, fweights = null, aweights = null } = options;
  if (fweights !== null) {
    if (isFloat(fweights.dtype) || fweights.dtype === 'bool')
      throw notIntegerWeights('cov: fweights', fweights.dtype);
    checkWeights('cov: fweights', fweights, observations);
  }
  if (aweights !== null) {
    requireFloat('cov: aweights', aweights);
    checkWeights('cov: aweights', aweights, observations);
  }
  const each = fweights !== null && aweights !== null ? mul(fweights, aweights) : (fweights ?? aweights);
  if (each === null) return null;
  const total = sum(each);
  if (noGrad(() => eq(total, 0).item()) === 1) throw badOption('cov', 'weights with a sum above 0', '0');
  // A weight of `aweights` is not a number of observations, so the correction is scaled by their mean.
  const corrected = aweights === null ? correction : mul(div(sum(mul(each, aweights)), total), correction);
  return { each, total, divisor: correction === 0 ? total : clamp(sub(total, corrected), 0) };
}

/**
 * Returns the covariances of variables [variables, observations]: [variables, variables]. A vector is one variable,
 * whose variance has no dimensions. Integers are computed in the dtype of `aweights`, or in float32. The gradient
 * reaches `aweights`, too.
 */
export function cov(a: Tensor, options: CovOptions<Tensor> = {}): Tensor {
  requireTensor('cov', a);
  requireNumbers('cov', a);
  checkOptions('cov', options, covOptions);
  if (a.rank > 2) throw needsRank('cov', 'at most 2', a.shape);
  const { correction = 1 } = options;
  return scope(() => {
    const [variables, observations] = a.rank === 2 ? (a.shape as [number, number]) : [1, a.count];
    const weights = weightsOf(options, observations);
    const floats = isFloat(a.dtype) ? a : to(a, options.aweights?.dtype ?? 'float32');
    const rows = reshape(floats, [variables, observations]);
    const out = weights === null ? plain(rows, correction) : weighted(rows, weights);
    return variables === 1 ? reshape(out, []) : out;
  });
}

function plain(rows: Tensor, correction: number): Tensor {
  const distance = sub(rows, mean(rows, 1, true));
  return div(matmul(distance, t(distance)), Math.max(0, rows.shape[1]! - correction));
}

function weighted(rows: Tensor, { each, total, divisor }: Weights): Tensor {
  const distance = sub(rows, div(sum(mul(rows, each), 1, true), total));
  return div(matmul(distance, t(mul(distance, each))), divisor);
}

/** Returns the correlations of variables, with the shapes of cov(): covariances divided by both standard deviations. */
export function corrcoef(a: Tensor): Tensor {
  requireTensor('corrcoef', a);
  if (a.rank > 2) throw needsRank('corrcoef', 'at most 2', a.shape);
  return scope(() => {
    const covariances = cov(a);
    if (covariances.rank === 0) return div(covariances, covariances);
    const deviation = sqrt(diagonal(covariances));
    return clamp(div(div(covariances, unsqueeze(deviation, 1)), deviation), -1, 1);
  });
}
