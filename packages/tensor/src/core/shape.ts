// Shapes, and the dimensions that arguments name. Pure arithmetic: no memory, no tensors.
import { notAnInteger, notDims, repeatedDim } from '../checks/argument-errors.ts';
import { badDim, badShape, broadcastFailed, tooManyDims } from '../errors.ts';

/** Sizes of the dimensions; [] for a tensor without dimensions. */
export type Shape = readonly number[];

export function countOf(shape: Shape): number {
  let count = 1;
  for (let d = 0; d < shape.length; d++) count *= shape[d]!;
  return count;
}

export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let d = 0; d < a.length; d++) if (a[d] !== b[d]) return false;
  return true;
}

/** Returns the number of elements of all dimensions but the last. */
export function rowsOf(shape: Shape): number {
  let rows = 1;
  for (let d = 0; d < shape.length - 1; d++) rows *= shape[d]!;
  return rows;
}

/** Returns the shape with another size of the last dimension. */
export function withLast(shape: Shape, size: number): Shape {
  const result: number[] = [];
  for (let d = 0; d < shape.length - 1; d++) result.push(shape[d]!);
  result.push(size);
  return result;
}

/** Returns an array of zeros. Faster than Array.fill, which takes longer than a small op. */
export function zeros(count: number): number[] {
  const list: number[] = [];
  for (let i = 0; i < count; i++) list.push(0);
  return list;
}

export function stridesOf(shape: Shape): number[] {
  const strides = zeros(shape.length);
  let stride = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d]!;
  }
  return strides;
}

/** Returns a copy of a caller's shape. Throws unless it is an array of at most `mostDims` integers ≥ 0. */
export function checkedShape(op: string, shape: Shape): Shape {
  if (!Array.isArray(shape)) throw badShape(op, shape);
  for (const size of shape) if (!Number.isSafeInteger(size) || size < 0) throw badShape(op, shape);
  checkRank(op, shape);
  return [...shape];
}

/** Largest number of dimensions that kernels take; kMaxRank in native/tensor/walk.h. */
export const mostDims = 16;

export function checkRank(op: string, shape: Shape): void {
  if (shape.length > mostDims) throw tooManyDims(op, mostDims, shape);
}

/** Broadcasts shapes by NumPy's rule: sizes are aligned at the end, and a size of 1 is broadcast. Throws for others. */
export function broadcastShapes(op: string, a: Shape, b: Shape): Shape {
  const long = a.length >= b.length ? a : b;
  const short = long === a ? b : a;
  const shape = long.slice();
  for (let d = short.length - 1, at = long.length - 1; d >= 0; d--, at--) {
    const x = long[at]!;
    const y = short[d]!;
    if (x === 1) shape[at] = y;
    else if (x !== y && y !== 1) throw broadcastFailed(op, a, b);
  }
  return shape;
}

/** Returns strides that broadcast elements of shape `from` to shape `to`. `strides` is null for dense elements. */
export function broadcastStrides(from: Shape, strides: readonly number[] | null, to: Shape): number[] {
  const result = zeros(to.length);
  let stride = 1;
  for (let d = from.length - 1, at = to.length - 1; d >= 0; d--, at--) {
    const size = from[d]!;
    if (size !== 1) result[at] = strides === null ? stride : strides[d]!;
    stride *= size;
  }
  return result;
}

/** Returns the index of a dimension; a negative `dim` counts from the end. Throws if there is none. */
export function checkedDim(op: string, dim: number, rank: number): number {
  if (!Number.isInteger(dim)) throw notAnInteger(op, 'a dimension', dim);
  const at = dim < 0 ? dim + rank : dim;
  if (at < 0 || at >= rank) throw badDim(op, dim, rank);
  return at;
}

/** Returns the indices of several dimensions. Throws if one is named twice. */
export function checkedDims(op: string, dims: number | readonly number[], rank: number): number[] {
  const named: unknown = typeof dims === 'number' ? [dims] : dims;
  if (!Array.isArray(named)) throw notDims(op, dims);
  const found: number[] = [];
  for (const dim of named) {
    const at = checkedDim(op, dim, rank);
    if (found.includes(at)) throw repeatedDim(op, dim);
    found.push(at);
  }
  return found;
}

/** Returns for each dimension whether `dims` names it; as in PyTorch, undefined and an empty array name all. */
export function dimMask(op: string, dims: number | readonly number[] | undefined, rank: number): boolean[] {
  // As in PyTorch, dimensions 0 and −1 of a tensor without dimensions name its only element.
  const isOne = rank === 0 && [dims].flat().every((dim) => dim === 0 || dim === -1);
  const named = dims === undefined ? [] : checkedDims(op, dims, isOne ? 1 : rank);
  const mask: boolean[] = [];
  for (let d = 0; d < rank; d++) mask.push(named.length === 0 || named.includes(d));
  return mask;
}

/** Returns `shape` with size 1 in the masked dimensions, or without them. */
export function reducedShape(shape: Shape, mask: readonly boolean[], keepDim: boolean): Shape {
  return keepDim ? shape.map((size, d) => (mask[d] ? 1 : size)) : shape.filter((_, d) => !mask[d]);
}
