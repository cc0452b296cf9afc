// Activations that are composed of other operations.
import { checkNumber } from '../../checks/arguments.ts';
import { scope } from '../../core/context.ts';
import type { Tensor } from '../../core/tensor.ts';
import { add, gt, le, maximum, mul, sub } from './binary.ts';
import { where } from './choose.ts';
import { clamp } from './clamp.ts';
import { requireFloat } from './convert.ts';
import { abs, exp, log, neg } from './unary.ts';

/** Returns a where it is positive, else slope × a. Floats only. */
export function leakyRelu(a: Tensor, slope = 0.01): Tensor {
  requireFloat('leakyRelu', a);
  checkNumber('leakyRelu', 'slope', slope);
  return scope(() => where(gt(a, 0), a, mul(a, slope)));
}

/** Returns a where it is positive, else alpha × (exp a − 1). Floats only. */
export function elu(a: Tensor, alpha = 1): Tensor {
  requireFloat('elu', a);
  checkNumber('elu', 'alpha', alpha);
  return scope(() => where(le(a, 0), mul(sub(exp(clamp(a, null, 0)), 1), alpha), a));
}

/** Computes log(1 + exp a), without overflow. Floats only. */
export function softplus(a: Tensor): Tensor {
  requireFloat('softplus', a);
  return scope(() => add(maximum(a, 0), log(add(exp(neg(abs(a))), 1))));
}
