// Matrices of powers.
import { checkFlag } from '../../checks/arguments.ts';
import { checkValue, nonNegativeInteger } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { ones } from '../../core/creation.ts';
import { isFloat } from '../../core/dtype.ts';
import type { Tensor } from '../../core/tensor.ts';
import { needsRank } from '../../errors.ts';
import { requireTensor, to } from '../elementwise/convert.ts';
import { cat } from '../shape/join.ts';
import { flip } from '../shape/rearrange.ts';
import { expand, narrow, unsqueeze } from '../shape/views.ts';
import { cumprod } from '../statistics/running.ts';

/**
 * Returns the matrix [count, columns] whose columns are powers of the vector `a` [count], the highest first, or with
 * `increasing` the lowest, 0. `columns` is by default the length of the vector. Integers and bool give int64.
 */
export function vander(a: Tensor, columns: number | null = null, increasing = false): Tensor {
  requireTensor('vander', a);
  checkFlag('vander', 'increasing', increasing);
  if (a.rank !== 1) throw needsRank('vander', 1, a.shape);
  const count = columns ?? a.count;
  checkValue('vander: columns', count, nonNegativeInteger);
  return scope(() => {
    const values = isFloat(a.dtype) ? a : to(a, 'int64');
    const first = ones([a.count, 1], { dtype: values.dtype, device: a.device });
    if (count < 2) return narrow(first, 1, 0, count).clone();
    const powers = cumprod(expand(unsqueeze(values, 1), [a.count, count - 1]), 1);
    const all = cat([first, powers], 1);
    return increasing ? all : flip(all, 1);
  });
}
