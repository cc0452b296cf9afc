// Covariance and correlation of variables.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { integer } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { CovOptions } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { needsRank } from '../../errors.ts';
import { div, sub } from '../elementwise/binary.ts';
import { clamp } from '../elementwise/clamp.ts';
import { requireNumbers, requireTensor, to } from '../elementwise/convert.ts';
import { sqrt } from '../elementwise/unary.ts';
import { diagonal } from '../matrix/diagonals.ts';
import { matmul } from '../matrix/matmul.ts';
import { mean } from '../reduce/reduce.ts';
import { reshape, t, unsqueeze } from '../shape/views.ts';

const covOptions = optionChecks<CovOptions>({ correction: integer });

/**
 * Returns the covariances of variables [variables, observations]: [variables, variables]. A vector is one variable,
 * whose variance has no dimensions. Integers are computed in float32.
 */
export function cov(a: Tensor, options: CovOptions = {}): Tensor {
  requireTensor('cov', a);
  requireNumbers('cov', a);
  checkOptions('cov', options, covOptions);
  if (a.rank > 2) throw needsRank('cov', 'at most 2', a.shape);
  const { correction = 1 } = options;
  return scope(() => {
    const rows = reshape(isFloat(a.dtype) ? a : to(a, 'float32'), a.rank === 2 ? a.shape : [1, a.count]);
    const [variables, observations] = rows.shape as [number, number];
    const distance = sub(rows, mean(rows, 1, true));
    const out = div(matmul(distance, t(distance)), Math.max(0, observations - correction));
    return variables === 1 ? reshape(out, []) : out;
  });
}

/** Returns the correlations of variables, with the shapes of cov(): covariances divided by both standard deviations. */
export function corrcoef(a: Tensor): Tensor {
  requireTensor('corrcoef', a);
  if (a.rank > 2) throw needsRank('corrcoef', 'at most 2', a.shape);
  return scope(() => {
    const all = cov(a);
    if (all.rank === 0) return div(all, all);
    const deviation = sqrt(diagonal(all));
    return clamp(div(div(all, unsqueeze(deviation, 1)), deviation), -1, 1);
  });
}
