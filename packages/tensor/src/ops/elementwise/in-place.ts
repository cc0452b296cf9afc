// Changes tensors in place. The change is visible in every view of the memory. Nothing is recorded: if the tensor or
// the operand requires a gradient, the call works only inside noGrad, and backward refuses a saved value that has
// changed since.

import { isRecording } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkFits } from '../../checks/arguments.ts';
import { refuseOptions } from '../../checks/options.ts';
import { isFloat } from '../../core/dtype.ts';
import { copyInto } from '../../core/memory/transfer.ts';
import { broadcastShapes, sameShape } from '../../core/shape.ts';
import type { Operand, Tensor } from '../../core/tensor.ts';
import { cannotStretchInto, floatIntoInteger, recordedInPlace, writtenTwice } from '../../errors.ts';
import { jointDevice } from '../joint-device.ts';
import { checkArithmetic, computingType, stretched } from './binary.ts';
import { clone, requireTensor } from './convert.ts';

/** Returns the indices of the first and the last element of its memory that a tensor uses. */
function extent(a: Tensor): [first: number, last: number] {
  let [first, last] = [a.offset, a.offset];
  for (const [d, stride] of a.strides.entries()) {
    const reach = (a.shape[d]! - 1) * stride;
    if (reach < 0) first += reach;
    else last += reach;
  }
  return [first, last];
}

/** Returns whether writing `a` would overwrite elements of `from` before they are read: same memory, another order. */
function isOverwritten(a: Tensor, from: Tensor): boolean {
  if (a.storage !== from.storage) return false;
  const isSame =
    a.offset === from.offset && sameShape(a.shape, from.shape) && sameShape(a.strides, from.strides);
  const [first, last] = extent(a);
  const [fromFirst, fromLast] = extent(from);
  return !isSame && first <= fromLast && fromFirst <= last;
}

/**
 * Returns whether elements of `a` may share memory, as after expand() or unfold(): whether a step along some dimension
 * is not larger than the way that the dimensions of smaller steps reach together.
 */
export function hasTwins(a: Tensor): boolean {
  if (a.count === 0 || a.isContiguous) return false;
  const steps = a.strides.map((stride, d) => ({ step: Math.abs(stride), size: a.shape[d]! }));
  let reach = 0;
  for (const { step, size } of steps.filter((each) => each.size > 1).sort((x, y) => x.step - y.step)) {
    if (step <= reach) return true;
    reach += step * (size - 1);
  }
  return false;
}

function change(name: string, a: Tensor, operand: Operand, write: (operand: Operand) => void): Tensor {
  requireTensor(name, a);
  if (typeof operand !== 'number') requireTensor(name, operand);
  if (isRecording(a, typeof operand === 'number' ? null : operand)) throw recordedInPlace(name);
  const shape = typeof operand === 'number' ? a.shape : operand.shape;
  if (!sameShape(broadcastShapes(name, a.shape, shape), a.shape))
    throw cannotStretchInto(name, shape, a.shape);
  if (hasTwins(a)) throw writtenTwice(name, a.shape);
  if (typeof operand !== 'number' && isOverwritten(a, operand)) {
    const copy = clone(operand);
    write(copy);
    copy.dispose();
  } else write(operand);
  a.storage.version++;
  return a;
}

const overwrite = (name: string, a: Tensor, from: Operand): Tensor =>
  change(name, a, from, (operand) => copyInto(a.strided, a.shape, stretched(operand, a.shape)));

/** Copies the values of another tensor, which is broadcast and converted, or a number that fits the dtype, to `a`. */
export function copy_(a: Tensor, from: Operand): Tensor {
  requireTensor('copy_', a);
  if (typeof from === 'number') checkFits('copy_', from, a.dtype);
  if (from === a && !isRecording(a)) return a;
  return overwrite('copy_', a, from);
}

/** Sets every element to `value`, which must fit the dtype; integers drop fractions. */
export function fill_(a: Tensor, value: number): Tensor {
  requireTensor('fill_', a);
  checkFits('fill_', value, a.dtype);
  return filled('fill_', a, value);
}
/** Sets every element to 0, in place. */
export const zero_ = (a: Tensor): Tensor => filled('zero_', a, 0);

/** Fills a tensor. Elements that share memory are written once. */
function filled(name: string, a: Tensor, value: number): Tensor {
  requireTensor(name, a);
  if (isRecording(a)) throw recordedInPlace(name);
  const once = a.shape.map((size, d) => (a.strides[d] === 0 ? Math.min(1, size) : size));
  kernels().copy(once, a.strided, value);
  a.storage.version++;
  return a;
}

function combine(
  name: string,
  op: 'add' | 'sub' | 'mul' | 'div',
  a: Tensor,
  b: Operand,
  extra: unknown,
): Tensor {
  if (extra !== undefined) refuseOptions(name, extra);
  return change(name, a, b, (operand) => {
    jointDevice(name, a, operand);
    const dtype = computingType(op, a, operand);
    checkArithmetic(name, op, a, operand, dtype);
    if (isFloat(dtype) && !isFloat(a.dtype)) throw floatIntoInteger(name, dtype, a.dtype);
    if (dtype !== 'bool' && a.dtype === 'bool') throw floatIntoInteger(name, dtype, a.dtype);
    kernels().map(op, dtype, a.shape, a.strided, a.strided, stretched(operand, a.shape));
  });
}

/** The type has no further arguments; implementations take one in order to refuse options. */
type Combination = (a: Tensor, b: Operand) => Tensor;

/**
 * Adds `b` to `a` in place. Not recorded: throws for a tensor that requires a gradient, except in
 * noGrad().
 */
export const add_: Combination = (a: Tensor, b: Operand, extra?: unknown) =>
  combine('add_', 'add', a, b, extra);
/** Subtracts `b` from `a` in place, with the rules of add_(). */
export const sub_: Combination = (a: Tensor, b: Operand, extra?: unknown) =>
  combine('sub_', 'sub', a, b, extra);
/** Multiplies `a` by `b` in place, with the rules of add_(). */
export const mul_: Combination = (a: Tensor, b: Operand, extra?: unknown) =>
  combine('mul_', 'mul', a, b, extra);
/** Divides `a` by `b` in place, with the rules of add_(). `a` must be a float. */
export const div_: Combination = (a: Tensor, b: Operand, extra?: unknown) =>
  combine('div_', 'div', a, b, extra);
