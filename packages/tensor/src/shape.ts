// Shapes, and which dimensions an argument names. Pure arithmetic: no memory, no tensors.
import { badDim, badShape, broadcastFailed } from './errors.ts';

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

export function stridesOf(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d]!;
  }
  return strides;
}

/** Returns a shape that a caller gave, as a copy of its own. */
export function checkedShape(op: string, shape: Shape): Shape {
  for (const size of shape) if (!Number.isSafeInteger(size) || size < 0) throw badShape(op, shape);
  return [...shape];
}

/** NumPy's rule: sizes are aligned at the end; 1 stretches. */
export function broadcastShapes(op: string, a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  const shape = new Array<number>(rank);
  for (let d = 1; d <= rank; d++) {
    const x = a[a.length - d] ?? 1;
    const y = b[b.length - d] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw broadcastFailed(op, a, b);
    shape[rank - d] = x === 1 ? y : x;
  }
  return shape;
}

/** Strides that read elements of shape `from` as if they had shape `to`. `strides`: null if they are dense. */
export function broadcastStrides(from: Shape, strides: readonly number[] | null, to: Shape): number[] {
  const result = new Array<number>(to.length).fill(0);
  let stride = 1;
  for (let d = 1; d <= from.length; d++) {
    const size = from[from.length - d]!;
    if (size !== 1) result[to.length - d] = strides === null ? stride : strides[from.length - d]!;
    stride *= size;
  }
  return result;
}

/** A dimension counted from the front; negative ones count from the end. */
export function checkedDim(op: string, dim: number, rank: number): number {
  const at = dim < 0 ? dim + rank : dim;
  if (!Number.isInteger(dim) || at < 0 || at >= rank) throw badDim(op, dim, rank);
  return at;
}

/** Which dimensions `dims` names; undefined names all. */
export function dimMask(op: string, dims: number | readonly number[] | undefined, rank: number): boolean[] {
  const mask = new Array<boolean>(rank).fill(dims === undefined);
  if (dims === undefined) return mask;
  for (const dim of typeof dims === 'number' ? [dims] : dims) mask[checkedDim(op, dim, rank)] = true;
  return mask;
}

/** `shape` with the masked dimensions as 1, or without them. */
export function reducedShape(shape: Shape, mask: readonly boolean[], keepDim: boolean): Shape {
  return keepDim ? shape.map((size, d) => (mask[d] ? 1 : size)) : shape.filter((_, d) => !mask[d]);
}
