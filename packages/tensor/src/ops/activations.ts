// Activations that are made of other operations.
import { scope } from '../context.ts';
import type { Tensor } from '../tensor.ts';
import { add, gt, maximum, mul, sub } from './binary.ts';
import { clamp, where } from './choose.ts';
import { abs, exp, log, neg } from './unary.ts';

/** a where it is positive, else slope × a. */
export const leakyRelu = (a: Tensor, slope = 0.01): Tensor => scope(() => where(gt(a, 0), a, mul(a, slope)));

/** a where it is positive, else alpha × (exp a − 1). */
export const elu = (a: Tensor, alpha = 1): Tensor =>
  scope(() => where(gt(a, 0), a, mul(sub(exp(clamp(a, null, 0)), 1), alpha)));

/** log(1 + exp a), without overflow. */
export const softplus = (a: Tensor): Tensor => scope(() => add(maximum(a, 0), log(add(exp(neg(abs(a))), 1))));
