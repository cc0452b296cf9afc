// Reductions that are composed of others.

import { checkFlag } from '../../checks/arguments.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { Dims } from '../../core/op-options.ts';
import { dimMask, reducedShape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { add, eq, sub } from '../elementwise/binary.ts';
import { where } from '../elementwise/choose.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { exp, log } from '../elementwise/unary.ts';
import { reshape } from '../shape/views.ts';
import { max, reducedCount, sum } from './reduce.ts';

/** Computes log Σ exp a over `dims`, without overflow; −∞ for nothing. */
export function logSumExp(a: Tensor, dims: Dims, keepDim = false): Tensor {
  requireTensor('logSumExp', a);
  checkFlag('logSumExp', 'keepDim', keepDim);
  if (!isFloat(a.dtype)) return scope(() => logSumExp(to(a, 'float32'), dims, keepDim));
  const shape = reducedShape(a.shape, dimMask('logSumExp', dims, a.rank), keepDim);
  if (reducedCount('logSumExp', a, dims) === 0) return scope(() => log(sum(exp(a), dims, keepDim)));
  return scope(() => {
    const top = max(a.detach(), dims, true);
    // An infinite maximum would give NaN, so any finite number is used instead.
    const shift = where(eq(sub(top, top), 0), top, 0);
    return reshape(add(log(sum(exp(sub(a, shift)), dims, true)), shift), shape);
  });
}
