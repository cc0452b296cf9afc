// Negative log-likelihoods of numbers: Gaussian and Poisson.

import { customFunction } from '../../autograd/custom.ts';
import { badVariance, negativeVariance } from '../../checks/loss-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, nonNegative, positive } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { sameShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { add, div, gt, lt, mul, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireFloat, requireTensor } from '../elementwise/convert.ts';
import { exp, log, square } from '../elementwise/unary.ts';
import { any } from '../reduce/reduce.ts';
import { type LossOptions, lossChecks, reduceLosses } from '../reduce/reduction.ts';
import { unsqueeze } from '../shape/views.ts';

/** Options of gaussianNllLoss(). */
export interface GaussianNllOptions extends LossOptions {
  /** Whether to add the constant ½ log 2π. Default false. */
  readonly full?: boolean;
  /** Smaller variances count as this. Default 1e-6. */
  readonly eps?: number;
}

export const gaussianNllOptions = optionChecks<GaussianNllOptions>({
  ...lossChecks,
  full: flag,
  eps: positive,
});

/** Raises variances below `eps` to `eps`. As in PyTorch, the gradient passes unchanged. */
const atLeast = customFunction<[Tensor, number]>({
  name: 'gaussianNllLoss',
  forward: (_, variance, eps) => clamp(variance, eps),
  backward: (_, grad) => [grad, null],
});

/**
 * Computes ½ (log variance + (input − target)² ÷ variance). `variance` has the shape of the input, or lacks its last
 * dimension or has size 1 there. Throws for a variance below 0, which the host reads.
 */
export function gaussianNllLoss(
  input: Tensor,
  target: Tensor,
  variance: Tensor,
  options: GaussianNllOptions = {},
): Tensor {
  const op = 'gaussianNllLoss';
  checkOptions(op, options, gaussianNllOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  requireTensor(op, variance);
  const { full = false, eps = 1e-6, reduction = 'mean' } = options;
  const lead = input.shape.slice(0, -1);
  const isFlat = !sameShape(variance.shape, input.shape) && input.rank > 0 && sameShape(variance.shape, lead);
  if (!isFlat && !sameShape(variance.shape, input.shape) && !sameShape(variance.shape, [...lead, 1]))
    throw badVariance(input.shape, variance.shape);
  return scope(() => {
    if (noGrad(() => any(lt(variance, 0)).item())) throw negativeVariance();
    const own = atLeast(isFlat ? unsqueeze(variance, -1) : variance, eps);
    const losses = mul(add(log(own), div(square(sub(input, target)), own)), 0.5);
    return reduceLosses(full ? add(losses, 0.5 * Math.log(2 * Math.PI)) : losses, reduction);
  });
}

/** Options of poissonNllLoss(). */
export interface PoissonNllOptions extends LossOptions {
  /** Whether the input is the logarithm of the rate. Default true. */
  readonly logInput?: boolean;
  /** Whether to add Stirling's approximation of log(target!) for targets above 1. Default false. */
  readonly full?: boolean;
  /** Added to a rate before its logarithm. Default 1e-8. */
  readonly eps?: number;
}

export const poissonNllOptions = optionChecks<PoissonNllOptions>({
  ...lossChecks,
  logInput: flag,
  full: flag,
  eps: nonNegative,
});

/** Computes exp(input) − target · input, or input − target · log(input + eps) with logInput: false. Broadcasts. */
export function poissonNllLoss(input: Tensor, target: Tensor, options: PoissonNllOptions = {}): Tensor {
  const op = 'poissonNllLoss';
  checkOptions(op, options, poissonNllOptions);
  requireFloat(op, input);
  requireTensor(op, target);
  const { logInput = true, full = false, eps = 1e-8, reduction = 'mean' } = options;
  return scope(() => {
    const losses = logInput
      ? sub(exp(input), mul(target, input))
      : sub(input, mul(target, log(add(input, eps))));
    return reduceLosses(full ? add(losses, stirling(target)) : losses, reduction);
  });
}

function stirling(target: Tensor): Tensor {
  const isLarge = gt(target, 1);
  // Other elements count as 1, so that neither values nor gradients are NaN.
  const known = where(isLarge, target, 1);
  const terms = add(sub(mul(known, log(known)), known), mul(log(mul(known, 2 * Math.PI)), 0.5));
  return where(isLarge, terms, 0);
}
