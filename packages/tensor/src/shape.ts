// Shapes, strides and the plan of a reduction. Pure arithmetic: no memory, no tensors. All tensors are dense and
// row-major; strides (in elements, 0 = broadcast) exist only between an op and its kernel.
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

/** Strides that read a dense tensor of shape `from` as if it had shape `to`. */
export function broadcastStrides(from: Shape, to: Shape): number[] {
  const strides = new Array<number>(to.length).fill(0);
  let stride = 1;
  for (let d = 1; d <= from.length; d++) {
    const size = from[from.length - d]!;
    if (size !== 1) strides[to.length - d] = stride;
    stride *= size;
  }
  return strides;
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

/** Which dimensions of `to` an input of shape `from` was stretched along. */
export function stretchedMask(from: Shape, to: Shape): boolean[] {
  const missing = to.length - from.length;
  return to.map((size, d) => size !== 1 && (d < missing || from[d - missing] === 1));
}

/** `shape` with the masked dimensions as 1, or without them. */
export function reducedShape(shape: Shape, mask: readonly boolean[], keepDim: boolean): Shape {
  return keepDim ? shape.map((size, d) => (mask[d] ? 1 : size)) : shape.filter((_, d) => !mask[d]);
}

/** One call of a reducing kernel: [outer, size, inner] → [outer, inner]. */
export interface ReduceStep {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
}

/** The kernel calls that reduce the masked dimensions: one for each run of neighbours, the last run first. */
export function planReduce(shape: Shape, mask: readonly boolean[]): ReduceStep[] {
  const steps: ReduceStep[] = [];
  let inner = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    if (!mask[d]) {
      inner *= shape[d]!;
      continue;
    }
    let size = shape[d]!;
    while (d > 0 && mask[d - 1]) size *= shape[--d]!;
    steps.push({ outer: countOf(shape.slice(0, d)), size, inner });
  }
  return steps;
}
