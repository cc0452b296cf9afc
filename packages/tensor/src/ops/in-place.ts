// Changing tensors where they lie. What is written is seen through every view of the memory. Nothing of it is recorded:
// a tensor that operations were recorded on can be changed inside noGrad only, and backward refuses to run over a
// value that it had saved and that has changed since.
import { isRecording } from '../autograd/node.ts';
import { kernels } from '../backends/index.ts';
import { cannotStretchInto, recordedInPlace } from '../errors.ts';
import { broadcastShapes, sameShape } from '../shape.ts';
import type { Operand, Tensor } from '../tensor.ts';
import { copyInto } from '../transfer.ts';
import { computingType, stretched } from './binary.ts';
import { jointDevice } from './joint-device.ts';

function change(name: string, a: Tensor, operand: Operand, write: () => void): Tensor {
  if (isRecording(a, typeof operand === 'number' ? null : operand)) throw recordedInPlace(name);
  const shape = typeof operand === 'number' ? a.shape : operand.shape;
  if (!sameShape(broadcastShapes(name, a.shape, shape), a.shape))
    throw cannotStretchInto(name, shape, a.shape);
  write();
  a.storage.version++;
  return a;
}

/** Writes the values of another tensor, which is broadcast and converted. They must not overlap partly. */
export const copy_ = (a: Tensor, from: Operand): Tensor =>
  change('copy_', a, from, () => copyInto(a.strided, a.shape, stretched(from, a.shape)));

export const fill_ = (a: Tensor, value: number): Tensor => copy_(a, value);
export const zero_ = (a: Tensor): Tensor => copy_(a, 0);

function combine(name: string, op: 'add' | 'sub' | 'mul' | 'div', a: Tensor, b: Operand): Tensor {
  return change(name, a, b, () => {
    jointDevice(name, a, b);
    kernels().map(op, computingType(op, a, b), a.shape, a.strided, a.strided, stretched(b, a.shape));
  });
}

export const add_ = (a: Tensor, b: Operand): Tensor => combine('add_', 'add', a, b);
export const sub_ = (a: Tensor, b: Operand): Tensor => combine('sub_', 'sub', a, b);
export const mul_ = (a: Tensor, b: Operand): Tensor => combine('mul_', 'mul', a, b);
export const div_ = (a: Tensor, b: Operand): Tensor => combine('div_', 'div', a, b);
