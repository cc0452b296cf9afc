// Layouts: the element of a piece of memory that each index refers to. A view is a function from layouts to
// layouts; the same function, applied to the dense layout of a gradient, gives the location of the view's
// gradient. Pure arithmetic.

import type { Strided } from '../backends/operands.ts';
import { badExpand } from '../errors.ts';
import { type Shape, stridesOf, zeros } from './shape.ts';

export interface Layout {
  readonly shape: Shape;
  /** Elements from one index to the next, by dimension. */
  readonly strides: readonly number[];
  /** Index of the first element in the memory. */
  readonly offset: number;
}

export const denseLayout = (shape: Shape): Layout => ({ shape, strides: stridesOf(shape), offset: 0 });

/** Returns whether the elements are contiguous in row-major order. Strides of dimensions of size 1 do not matter. */
export function isDense({ shape, strides }: Layout): boolean {
  let expected = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    const size = shape[d]!;
    if (size === 0) return true;
    if (size === 1) continue;
    if (strides[d] !== expected) return false;
    expected *= size;
  }
  return true;
}

export const permuted = ({ shape, strides, offset }: Layout, dims: readonly number[]): Layout => ({
  shape: dims.map((dim) => shape[dim]!),
  strides: dims.map((dim) => strides[dim]!),
  offset,
});

/** Selects `size` indices along `dim`: every `step`-th from `start` on. */
export const narrowed = (
  { shape, strides, offset }: Layout,
  dim: number,
  start: number,
  size: number,
  step: number,
): Layout => ({
  shape: shape.with(dim, size),
  strides: strides.with(dim, strides[dim]! * step),
  offset: offset + start * strides[dim]!,
});

/** Drops a dimension: only its first index remains. */
export const without = ({ shape, strides, offset }: Layout, dim: number): Layout => ({
  shape: shape.toSpliced(dim, 1),
  strides: strides.toSpliced(dim, 1),
  offset,
});

export const selected = (layout: Layout, dim: number, index: number): Layout =>
  without(narrowed(layout, dim, index, 1, 1), dim);

/** Selects elements with equal indices along two dimensions of one size, and drops `second`, the later one. */
export const onDiagonal = ({ shape, strides, offset }: Layout, first: number, second: number): Layout => ({
  shape: shape.toSpliced(second, 1),
  strides: strides.with(first, strides[first]! + strides[second]!).toSpliced(second, 1),
  offset,
});

/** Adds a dimension of size 1 before `dim`. */
export const inserted = ({ shape, strides, offset }: Layout, dim: number): Layout => ({
  shape: shape.toSpliced(dim, 0, 1),
  strides: strides.toSpliced(dim, 0, 0),
  offset,
});

/** Broadcasts to `shape`: sizes are aligned at the end, a size of 1 is broadcast, and −1 keeps a size. */
export function expanded(layout: Layout, shape: Shape): Layout {
  const missing = shape.length - layout.shape.length;
  if (missing < 0) throw badExpand(layout.shape, shape);
  const sizes = shape.map((size, d) => (size === -1 && d >= missing ? layout.shape[d - missing]! : size));
  const strides = sizes.map((size, d) => {
    if (!Number.isSafeInteger(size) || size < 0) throw badExpand(layout.shape, shape);
    const own = d < missing ? 1 : layout.shape[d - missing]!;
    if (own !== size && own !== 1) throw badExpand(layout.shape, shape);
    return own === 1 ? 0 : layout.strides[d - missing]!;
  });
  return { shape: sizes, strides, offset: layout.offset };
}

/** Returns the same elements in the same order in another shape, or null if no strides express it. */
export function reshaped(layout: Layout, shape: Shape): Layout | null {
  const { offset } = layout;
  if (isDense(layout)) return { shape, strides: stridesOf(shape), offset };
  const strides = new Array<number>(shape.length).fill(1);
  const from = layout.shape.flatMap((size, d) => (size === 1 ? [] : [{ size, stride: layout.strides[d]! }]));
  // Compares runs of dimensions with equal counts on both sides. A run can be split differently only if it is dense.
  let to = shape.length - 1;
  for (let d = from.length - 1; d >= 0; d--) {
    let size = from[d]!.size;
    let stride = from[d]!.stride;
    const innermost = stride;
    while (d > 0 && from[d - 1]!.stride === innermost * size) {
      size *= from[--d]!.size;
    }
    for (let count = 1; count < size; to--) {
      if (to < 0) return null;
      strides[to] = stride;
      stride *= shape[to]!;
      count *= shape[to]!;
      if (count > size || size % count !== 0) return null;
    }
  }
  return { shape, strides, offset };
}

/** Returns the same memory with other strides. Copies members one by one, because spreading an object is slow. */
export const withStrides = ({ memory, offset }: Strided, strides: readonly number[] | null): Strided => ({
  memory,
  offset,
  strides,
});

/** Returns the strides of a dense result in the shape before a reduction: 0 along the reduced dimensions. */
export function keptStrides(shape: Shape, isReduced: readonly boolean[]): number[] {
  const strides = zeros(shape.length);
  let stride = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    if (isReduced[d]) continue;
    if (shape[d] !== 1) strides[d] = stride;
    stride *= shape[d]!;
  }
  return strides;
}
