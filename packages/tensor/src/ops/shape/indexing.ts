// at(): elements and parts by position, as PyTorch's x[...].

import { badIndexKind, badIndexRange } from '../../checks/argument-errors.ts';
import { inserted, type Layout, narrowed, selected } from '../../core/layout.ts';
import type { Index } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown, tooManyIndices } from '../../errors.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { checkedIndex, part } from './views.ts';

const takesDim = (index: Index): boolean => index !== '...' && index !== null;

function clamped(value: number | null | undefined, otherwise: number, size: number): number {
  const at = value ?? otherwise;
  return Math.min(Math.max(at < 0 ? at + size : at, 0), size);
}

/** Throws unless the value is an index: values of other types would select all of the tensor, or wrong elements. */
function checkIndex(index: Index): void {
  if (index === null || index === ':' || index === '...' || Number.isInteger(index)) return;
  if (!Array.isArray(index)) throw badIndexKind(index);
  const isPosition = (value: number | null | undefined): boolean =>
    value === null || value === undefined || Number.isInteger(value);
  if (index.length < 1 || index.length > 3 || !index.every(isPosition)) throw badIndexRange(index);
}

/** Returns the layout after one index, which refers to dimension `dim`. */
function applied(layout: Layout, dim: number, index: Index): Layout {
  if (typeof index === 'number') return selected(layout, dim, checkedIndex('at', layout.shape, dim, index));
  if (index === null) return inserted(layout, dim);
  if (typeof index === 'string') return layout;
  const size = layout.shape[dim]!;
  const step = index[2] ?? 1;
  const start = clamped(index[0], 0, size);
  const end = clamped(index[1], size, size);
  if (step < 1) throw badOption('at: step', 'an integer ≥ 1', shown(step));
  return narrowed(layout, dim, start, Math.max(0, Math.ceil((end - start) / step)), step);
}

/**
 * Returns the elements that `indices` name. Shares memory with `a`. Ranges are cut to the size, like slices
 * in Python.
 */
export function at(a: Tensor, ...indices: readonly Index[]): Tensor {
  requireTensor('at', a);
  indices.forEach(checkIndex);
  const used = indices.filter(takesDim).length;
  const dots = indices.indexOf('...');
  if (used > a.rank || dots !== indices.lastIndexOf('...')) throw tooManyIndices(indices.length, a.shape);
  return part('at', a, (whole) => {
    let layout = whole;
    let dim = 0;
    for (const index of indices) {
      if (index === '...') {
        dim += whole.shape.length - used;
        continue;
      }
      layout = applied(layout, dim, index);
      if (typeof index !== 'number') dim++;
    }
    return layout;
  });
}
