// Parses a list of indices, as of x.at(…), into its effect on the layout of a tensor, and the index tensors in it.

import { badIndexKind, badIndexRange } from '../../checks/argument-errors.ts';
import { inserted, type Layout, narrowed, selected } from '../../core/layout.ts';
import { countOf, type Shape, sameShape } from '../../core/shape.ts';
import { type Index, Tensor } from '../../core/tensor.ts';
import { badOption, maskShape, needsIndex, shown, tooManyIndices } from '../../errors.ts';
import { checkedIndex } from '../shape/views.ts';

/** A tensor that names positions along some dimensions of a view, which are counted as if they were joined to one. */
export interface TensorIndex {
  /** int32 or int64 positions, or a mask of bool. */
  readonly index: Tensor;
  /** The first of the dimensions. */
  readonly dim: number;
  /** Number of dimensions: those of a mask, or 1. */
  readonly span: number;
  /** Number of positions. */
  readonly size: number;
}

export interface IndexPlan {
  /** Applies all indices but the tensors. */
  readonly view: (whole: Layout) => Layout;
  /** The tensors, with dimensions of the view. */
  readonly tensorIndices: readonly TensorIndex[];
}

const isMask = (index: Index): index is Tensor => index instanceof Tensor && index.dtype === 'bool';

/** Returns the number of dimensions of the tensor that an index consumes. */
function dimsOf(index: Index): number {
  if (index === '...' || index === null) return 0;
  return isMask(index) ? index.rank : 1;
}

function clamped(value: number | null | undefined, otherwise: number, size: number): number {
  const at = value ?? otherwise;
  return Math.min(Math.max(at < 0 ? at + size : at, 0), size);
}

/**
 * Returns an index that is known to be valid in itself. An integer tensor without dimensions becomes its number, as in
 * PyTorch. Throws for other values, which would select all of the tensor, or wrong elements.
 */
function checked(op: string, index: Index): Index {
  if (index === null || index === ':' || index === '...' || Number.isInteger(index)) return index;
  if (index instanceof Tensor) {
    if (index.dtype === 'bool') return index;
    if (index.dtype !== 'int32' && index.dtype !== 'int64') throw needsIndex(op, index.dtype);
    return index.rank === 0 ? Number(index.item()) : index;
  }
  if (!Array.isArray(index)) throw badIndexKind(op, index);
  const isPosition = (value: number | null | undefined): boolean =>
    value === null || value === undefined || Number.isInteger(value);
  if (index.length < 1 || index.length > 3 || !index.every(isPosition)) throw badIndexRange(op, index);
  return index;
}

/** Returns the layout after one index that is no tensor and refers to dimension `dim`. */
function applied(op: string, layout: Layout, dim: number, index: Exclude<Index, Tensor>): Layout {
  if (typeof index === 'number') return selected(layout, dim, checkedIndex(op, layout.shape, dim, index));
  if (index === null) return inserted(layout, dim);
  if (typeof index === 'string') return layout;
  const size = layout.shape[dim]!;
  const step = index[2] ?? 1;
  const start = clamped(index[0], 0, size);
  const end = clamped(index[1], size, size);
  if (step < 1) throw badOption(`${op}: step`, 'an integer ≥ 1', shown(step));
  return narrowed(layout, dim, start, Math.max(0, Math.ceil((end - start) / step)), step);
}

function tensorIndexOf(op: string, shape: Shape, dim: number, index: Tensor): TensorIndex {
  const span = dimsOf(index);
  const own = shape.slice(dim, dim + span);
  if (isMask(index) && !sameShape(index.shape, own)) throw maskShape(op, index.shape, own);
  return { index, dim, span, size: countOf(own) };
}

/**
 * Applies checked indices to a layout. Passes the tensors among them to `onTensorIndex`. `rest` is the number of
 * dimensions that '...' stands for.
 */
function walked(
  op: string,
  whole: Layout,
  indices: readonly Index[],
  rest: number,
  onTensorIndex: (tensorIndex: TensorIndex) => void,
): Layout {
  let layout = whole;
  let dim = 0;
  for (const index of indices) {
    if (index === '...') {
      dim += rest;
    } else if (index instanceof Tensor) {
      const tensorIndex = tensorIndexOf(op, layout.shape, dim, index);
      onTensorIndex(tensorIndex);
      dim += tensorIndex.span;
    } else {
      layout = applied(op, layout, dim, index);
      if (typeof index !== 'number') dim++;
    }
  }
  return layout;
}

/** Returns the effect of a list of indices on tensors with the shape of `a`. Throws if the indices do not fit. */
export function planOf(op: string, a: Tensor, given: readonly Index[]): IndexPlan {
  const indices = given.map((index) => checked(op, index));
  const used = indices.reduce<number>((sum, index) => sum + dimsOf(index), 0);
  const dots = indices.indexOf('...');
  if (used > a.rank || dots !== indices.lastIndexOf('...')) throw tooManyIndices(op, indices.length, a.shape);
  const tensorIndices: TensorIndex[] = [];
  const rest = a.rank - used;
  walked(op, a.layout, indices, rest, (tensorIndex) => tensorIndices.push(tensorIndex));
  return { view: (whole) => walked(op, whole, indices, rest, () => {}), tensorIndices };
}
