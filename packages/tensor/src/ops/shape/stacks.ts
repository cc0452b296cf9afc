// Joins tensors along dimensions that may have to be added first, and adds dimensions up to a minimum number.

import { notTensors } from '../../checks/argument-errors.ts';
import { scope } from '../../core/context.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption } from '../../errors.ts';
import { requireTensor } from '../elementwise/convert.ts';
import { cat } from './join.ts';
import { reshape, unsqueeze } from './views.ts';

/** Returns a tensor without dimensions as [1], and others as they are. Shares memory with `a`. */
export function atleast1d(a: Tensor): Tensor {
  requireTensor('atleast1d', a);
  return a.rank === 0 ? reshape(a, [1]) : a;
}

/** Returns a tensor of fewer than 2 dimensions as [1, n], and others as they are. Shares memory with `a`. */
export function atleast2d(a: Tensor): Tensor {
  requireTensor('atleast2d', a);
  return a.rank < 2 ? reshape(a, [1, a.count]) : a;
}

/** Returns [n] as [1, n, 1], [m, n] as [m, n, 1], and tensors of 3 dimensions as they are. Shares memory with `a`. */
export function atleast3d(a: Tensor): Tensor {
  requireTensor('atleast3d', a);
  if (a.rank < 2) return reshape(a, [1, a.count, 1]);
  return a.rank === 2 ? unsqueeze(a, -1) : a;
}

function joined(
  op: string,
  tensors: readonly Tensor[],
  widened: (a: Tensor) => Tensor,
  dim: (first: Tensor) => number,
): Tensor {
  const areTensors = Array.isArray(tensors) && tensors.every((tensor) => tensor instanceof Tensor);
  if (!areTensors) throw notTensors(op, tensors);
  if (tensors.length === 0) throw badOption(`${op}: tensors`, 'at least one', 'none');
  return scope(() => {
    const all = tensors.map(widened);
    return cat(all, dim(all[0]!));
  });
}

/** Concatenates vectors along their only dimension, and others along the second one. Returns a copy. */
export const hstack = (tensors: readonly Tensor[]): Tensor =>
  joined('hstack', tensors, atleast1d, (first) => (first.rank === 1 ? 0 : 1));

/** Concatenates along the first dimension, with vectors as rows. Returns a copy. */
export const vstack = (tensors: readonly Tensor[]): Tensor => joined('vstack', tensors, atleast2d, () => 0);

/** Concatenates along the third dimension, which atleast3d() adds. Returns a copy. */
export const dstack = (tensors: readonly Tensor[]): Tensor => joined('dstack', tensors, atleast3d, () => 2);

/** Concatenates along the second dimension, with vectors as columns. Returns a copy. */
export const columnStack = (tensors: readonly Tensor[]): Tensor =>
  joined(
    'columnStack',
    tensors,
    (a) => (a.rank < 2 ? reshape(a, [a.count, 1]) : a),
    () => 1,
  );
