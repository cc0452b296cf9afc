// Reductions that are made of others.
import { checkFlag } from '../arguments.ts';
import { scope } from '../context.ts';
import { isFloat } from '../dtype.ts';
import { dimMask, reducedShape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { add, eq, sub } from './binary.ts';
import { where } from './choose.ts';
import { requireTensor, to } from './convert.ts';
import { type Dims, max, reducedCount, sum } from './reduce.ts';
import { exp, log } from './unary.ts';
import { reshape } from './views.ts';

/** log Σ exp a, without overflow; −∞ of nothing. */
export function logSumExp(a: Tensor, dims: Dims, keepDim = false): Tensor {
  requireTensor('logSumExp', a);
  checkFlag('logSumExp', 'keepDim', keepDim);
  if (!isFloat(a.dtype)) return scope(() => logSumExp(to(a, 'float32'), dims, keepDim));
  const shape = reducedShape(a.shape, dimMask('logSumExp', dims, a.rank), keepDim);
  if (reducedCount('logSumExp', a, dims) === 0) return scope(() => log(sum(exp(a), dims, keepDim)));
  return scope(() => {
    const top = max(a.detach(), dims, true);
    // An infinite maximum would leave NaN; anything finite will do there.
    const shift = where(eq(sub(top, top), 0), top, 0);
    return reshape(add(log(sum(exp(sub(a, shift)), dims, true)), shift), shape);
  });
}
