// at(): elements and parts by position, as PyTorch's x[...].
import { scope } from '../../core/context.ts';
import type { Index, Tensor } from '../../core/tensor.ts';
import { contiguous, requireTensor } from '../elementwise/convert.ts';
import { part } from '../shape/views.ts';
import { arranged } from './arrange.ts';
import { planOf } from './index-list.ts';
import { lookedUp } from './moves.ts';

/**
 * Returns the elements that `indices` name, as PyTorch's `a[...]`. Numbers, ranges, ':', '...' and null give a view,
 * which shares memory with `a`; ranges are cut to the size, like slices in Python. Tensors give a copy: int32 or int64
 * positions, which are broadcast and may be negative, or masks of bool, which take as many dimensions as they have.
 * Their shape stands where the indexed dimensions are, or in front if these are not adjacent. A mask on a device makes
 * the host wait for it.
 *
 * @example
 * ```ts
 * const rows = tensor([2n, 0n]);
 * x.at(rows); // rows 2 and 0
 * x.at(':', -1); // the last column
 * x.at(x.gt(0)); // all positive elements
 * ```
 */
export function at(a: Tensor, ...indices: readonly Index[]): Tensor {
  requireTensor('at', a);
  const { view, tensorIndices } = planOf('at', a, indices);
  if (tensorIndices.length === 0) return part('at', a, view);
  return scope(() => {
    const { moved, positions, sizes, shape } = arranged('at', part('at', a, view), tensorIndices);
    return lookedUp('at', contiguous(moved), positions, shape, sizes);
  });
}
