// Moves, turns and stretches dimensions.

import { notTensors } from '../../checks/argument-errors.ts';
import { checkInteger } from '../../checks/arguments.ts';
import { unequalMoves } from '../../checks/array-errors.ts';
import { scope } from '../../core/context.ts';
import type { Dims } from '../../core/op-options.ts';
import { broadcastShapes, checkedDims, type Shape } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, needsRank, shown } from '../../errors.ts';
import { clone, requireOperand, requireTensor } from '../elementwise/convert.ts';
import { flip } from './rearrange.ts';
import { expand, flatten, permute, reshape, transpose, view } from './views.ts';

/** Moves the dimensions `source` to the indices `destination`; the others keep their order. Shares memory with `a`. */
export function movedim(a: Tensor, source: Dims, destination: Dims): Tensor {
  requireTensor('movedim', a);
  // As in PyTorch, a tensor without dimensions counts as one with one dimension.
  const rank = Math.max(1, a.rank);
  const from = checkedDims('movedim', source, rank);
  const to = checkedDims('movedim', destination, rank);
  if (from.length !== to.length) throw unequalMoves(from.length, to.length);
  if (a.rank === 0) return permute(a, []);
  const order = new Array<number>(rank).fill(-1);
  for (const [i, dim] of to.entries()) order[dim] = from[i]!;
  const others = a.shape.map((_, d) => d).filter((d) => !from.includes(d));
  return permute(
    a,
    order.map((dim) => (dim === -1 ? others.shift()! : dim)),
  );
}

/** Swaps two dimensions, as transpose() does. Shares memory with `a`. */
export const swapaxes = (a: Tensor, dim0: number, dim1: number): Tensor => transpose(a, dim0, dim1);

/** Turns the plane of two dimensions by `k` quarters, from the first towards the second. Returns a copy. */
export function rot90(a: Tensor, k = 1, dims: readonly number[] = [0, 1]): Tensor {
  requireTensor('rot90', a);
  checkInteger('rot90', 'k', k);
  const plane = checkedDims('rot90', dims, a.rank);
  if (plane.length !== 2) throw badOption('rot90: dims', 'two dimensions', shown(dims));
  const [first, second] = plane as [number, number];
  const quarters = ((k % 4) + 4) % 4;
  if (quarters === 0) return clone(a);
  if (quarters === 2) return flip(a, plane);
  return scope(() => transpose(flip(a, quarters === 1 ? second : first), first, second));
}

/** Reverses the order along the second dimension. Returns a copy. */
export function fliplr(a: Tensor): Tensor {
  requireTensor('fliplr', a);
  if (a.rank < 2) throw needsRank('fliplr', 'at least 2', a.shape);
  return flip(a, 1);
}

/** Reverses the order along the first dimension. Returns a copy. */
export function flipud(a: Tensor): Tensor {
  requireTensor('flipud', a);
  if (a.rank < 1) throw needsRank('flipud', 'at least 1', a.shape);
  return flip(a, 0);
}

/** Returns the elements as a vector. Shares memory with `a` if strides allow it, else copies. */
export const ravel = (a: Tensor): Tensor => flatten(a);

/** Broadcasts `a` to a shape, as expand() does. Shares memory with `a`. */
export const broadcastTo = (a: Tensor, shape: Shape): Tensor => expand(a, shape);

/** Broadcasts tensors to their joint shape. The results share memory with them. */
export function broadcastTensors(...tensors: readonly Tensor[]): Tensor[] {
  const op = 'broadcastTensors';
  if (!tensors.every((tensor) => tensor instanceof Tensor)) throw notTensors(op, tensors);
  const shape = tensors.reduce<Shape>((joint, tensor) => broadcastShapes(op, joint, tensor.shape), []);
  return tensors.map((tensor) => expand(tensor, shape));
}

/** Returns view() with the shape of another tensor. */
export function viewAs(a: Tensor, other: Tensor): Tensor {
  requireOperand('viewAs', 'the other', other);
  return view(a, other.shape);
}

/** Returns reshape() with the shape of another tensor. */
export function reshapeAs(a: Tensor, other: Tensor): Tensor {
  requireOperand('reshapeAs', 'the other', other);
  return reshape(a, other.shape);
}

/** Returns expand() with the shape of another tensor. */
export function expandAs(a: Tensor, other: Tensor): Tensor {
  requireOperand('expandAs', 'the other', other);
  return expand(a, other.shape);
}
