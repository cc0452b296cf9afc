// Shapes, and which dimensions an argument names. Pure arithmetic: no memory, no tensors.
import { notAnInteger, notDims, repeatedDim } from '../checks/argument-errors.ts';
import { badDim, badShape, broadcastFailed, tooManyDims } from '../errors.ts';

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

/** The elements of all dimensions but the last. */
export function rowsOf(shape: Shape): number {
  let rows = 1;
  for (let d = 0; d < shape.length - 1; d++) rows *= shape[d]!;
  return rows;
}

/** The shape with another size of the last dimension. */
export function withLast(shape: Shape, size: number): Shape {
  const result: number[] = [];
  for (let d = 0; d < shape.length - 1; d++) result.push(shape[d]!);
  result.push(size);
  return result;
}

/** Array.fill, and indices outside of an array, cost more than the op they are computed for. */
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

/** Returns a shape that a caller gave, as a copy of its own. */
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

/** NumPy's rule: sizes are aligned at the end; 1 stretches. */
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

/** Strides that read elements of shape `from` as if they had shape `to`. `strides`: null if they are dense. */
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

/** A dimension counted from the front; negative ones count from the end. */
export function checkedDim(op: string, dim: number, rank: number): number {
  const at = dim < 0 ? dim + rank : dim;
  if (!Number.isInteger(dim)) throw notAnInteger(op, 'a dimension', dim);
  if (at < 0 || at >= rank) throw badDim(op, dim, rank);
  return at;
}

/** Several dimensions, each counted from the front. Throws where one is named twice. */
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

/** Which dimensions `dims` names; as in PyTorch, undefined and an empty array name all. */
export function dimMask(op: string, dims: number | readonly number[] | undefined, rank: number): boolean[] {
  // As in PyTorch, a tensor without dimensions is reduced over its only element.
  const isOne = rank === 0 && [dims].flat().every((dim) => dim === 0 || dim === -1);
  const named = dims === undefined ? [] : checkedDims(op, dims, isOne ? 1 : rank);
  const mask: boolean[] = [];
  for (let d = 0; d < rank; d++) mask.push(named.length === 0 || named.includes(d));
  return mask;
}

/** `shape` with the masked dimensions as 1, or without them. */
export function reducedShape(shape: Shape, mask: readonly boolean[], keepDim: boolean): Shape {
  return keepDim ? shape.map((size, d) => (mask[d] ? 1 : size)) : shape.filter((_, d) => !mask[d]);
}
