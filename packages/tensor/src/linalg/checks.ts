// Checks of the operands of linear algebra, and its errors.

import type { Shape } from '../core/shape.ts';
import type { Tensor } from '../core/tensor.ts';
import { show } from '../errors/tensor-error.ts';
import { notOnHost, TensorError } from '../errors.ts';
import { requireFloat, requireTensor } from '../ops/elementwise/convert.ts';

/** Throws unless `a` has matrices of float32 or float64 on the CPU; with `isSquare`, unless they are square. */
export function requireMatrices(op: string, a: Tensor, isSquare = false): void {
  requireFloat(op, a);
  if (a.dtype !== 'float32' && a.dtype !== 'float64')
    throw new TensorError(
      'ERR_TENSOR_DTYPE',
      `${op}: expected float32 or float64, got ${a.dtype}. Use to('float32').`,
    );
  if (a.device !== 'cpu') throw notOnHost(op, a.device);
  if (isSquare) requireSquare(op, a);
  else if (a.rank < 2) throw wrongShape(op, 'matrices [..., m, n]', a.shape);
}

/** Throws unless `a` is a tensor of square matrices, of any dtype and on any device. */
export function requireSquare(op: string, a: Tensor): void {
  requireTensor(op, a);
  if (a.rank < 2 || a.shape.at(-1) !== a.shape.at(-2))
    throw wrongShape(op, 'square matrices [..., n, n]', a.shape);
}

const wrongShape = (op: string, expected: string, shape: Shape): TensorError =>
  new TensorError('ERR_TENSOR_SHAPE', `${op}: expected ${expected}, got shape ${show(shape)}.`);

/** Throws unless both have one dtype. */
export function requireSameDtype(op: string, a: Tensor, b: Tensor): void {
  if (a.dtype !== b.dtype)
    throw new TensorError(
      'ERR_TENSOR_DTYPE',
      `${op}: expected tensors of one dtype, got ${a.dtype} and ${b.dtype}. Convert one with to('${a.dtype}').`,
    );
}

export const shapesDoNotFit = (op: string, a: Shape, b: Shape): TensorError =>
  new TensorError(
    'ERR_TENSOR_SHAPE',
    `${op}: expected as many rows on the right as the equations have, got shapes ${show(a)} and ${show(b)}.`,
  );

const failed = (message: string): TensorError => new TensorError('ERR_TENSOR_LINALG', message);
const inBatch = (index: number, a: Tensor): string =>
  a.rank > 2 ? `matrix ${index} of the batch` : 'the matrix';

export const singular = (op: string, a: Tensor, index: number, pivot: number): TensorError =>
  failed(
    `${op}: expected an invertible matrix, but ${inBatch(index, a)} is singular: pivot ${pivot} is 0. Use pinv or lstsq for a least-squares answer.`,
  );

export const notPositiveDefinite = (op: string, a: Tensor, index: number, order: number): TensorError =>
  failed(
    `${op}: expected a positive definite matrix, but the leading minor of order ${order} of ${inBatch(index, a)} is not positive. Add a small multiple of the identity, or use eigh.`,
  );

export const notFinite = (op: string, a: Tensor, index: number): TensorError =>
  failed(`${op}: expected finite numbers, but ${inBatch(index, a)} has NaN or infinite ones.`);

export const noGradient = (op: string, what: string): TensorError =>
  new TensorError('ERR_TENSOR_AUTOGRAD', `${op}: there is no gradient through ${what}.`);
