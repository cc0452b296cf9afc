// Copies of tensors: to other memory, to another dtype or device, in dense order. Also the checks of operands that are
// tensors.

import { graphOf, passedOn } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { notAnOperand, notOneTensor } from '../../checks/argument-errors.ts';
import { needsNumbers } from '../../checks/op-errors.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import { type DType, isDType, isFloat, isHalf } from '../../core/dtype.ts';
import { allocatePinned } from '../../core/memory/storage.ts';
import { transferred } from '../../core/memory/transfer.ts';
import type { ToOptions } from '../../core/op-options.ts';
import { created, empty, Tensor } from '../../core/tensor.ts';
import { type Device, type DeviceName, deviceOf } from '../../device/device.ts';
import { needsFloat, notATensor, onlyPinnedOnHost } from '../../errors.ts';

function copied(name: string, a: Tensor, wanted?: DType): Tensor {
  requireTensor(name, a);
  const dtype = wanted ?? a.dtype;
  const out = empty(dtype, a.shape, a.device);
  kernels().copy(a.shape, out.strided, a.strided);
  if (!isRecording(a) || !isFloat(dtype)) return out;
  const target = a.target!;
  return record(name, out, [target], [], passedOn(target));
}

const toOptions = optionChecks<ToOptions>({ nonBlocking: flag });

/** Returns a dense copy in new memory. */
export const clone = (a: Tensor): Tensor => copied('clone', a);

/**
 * Returns a copy in another dtype or on another device, or the tensor itself if it has that. Floats become integers
 * towards zero. Gradients are converted back.
 */
export function to(a: Tensor, target: DType | DeviceName, options: ToOptions = {}): Tensor {
  requireTensor('to', a);
  checkOptions('to', options, toOptions);
  if (isDType(target)) return a.dtype === target ? a : copied('to', a, target);
  const device = deviceOf(target, 'to');
  return a.device === device ? a : moved(a, device, options.nonBlocking ?? false);
}

function moved(a: Tensor, device: Device, isNonBlocking: boolean): Tensor {
  const out = created(transferred(a.strided, a.shape, a.dtype, device, isNonBlocking), a.shape);
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record('to', out, [target], [], (grad, graph) => {
    if (graph) {
      graphOf(graph).send(target, moved(graphOf(graph).grad, target.device, false));
      return;
    }
    const back = transferred(grad.dense, [grad.memory.count], grad.memory.dtype, target.device);
    target.share(back);
    back.release();
  });
}

/** Returns a copy in pinned memory, or the tensor itself if it is already there. Gradients are copied back. */
export function pinMemory(a: Tensor): Tensor {
  requireTensor('pinMemory', a);
  if (a.device !== 'cpu') throw onlyPinnedOnHost(a.device);
  if (a.isPinned) return a;
  const out = created(allocatePinned(a.dtype, a.count), a.shape);
  kernels().copy(a.shape, out.strided, a.strided);
  if (!isRecording(a)) return out;
  const target = a.target!;
  return record('pinMemory', out, [target], [], passedOn(target));
}

/** Returns the tensor itself if its elements are dense in row-major order, else a copy. */
export function contiguous(a: Tensor): Tensor {
  requireTensor('contiguous', a);
  return a.isContiguous ? a : copied('contiguous', a);
}

/** Throws unless the value is a tensor. */
export function requireTensor(op: string, value: unknown): void {
  if (!(value instanceof Tensor)) throw notOneTensor(op, value);
}

/** Throws unless the value is a tensor; the error names the argument. */
export function requireOperand(op: string, name: string, value: unknown): void {
  if (!(value instanceof Tensor)) throw notAnOperand(op, name, value);
}

/** Throws unless the value is a tensor of floats. */
export function requireFloat(op: string, a: Tensor): void {
  requireTensor(op, a);
  if (!isFloat(a.dtype)) throw needsFloat(op, a.dtype);
}

/** Throws unless the value is a tensor that is not of bool. */
export function requireNumbers(op: string, a: Tensor): void {
  if (!(a instanceof Tensor)) throw notATensor(op, a);
  if (a.dtype === 'bool') throw needsNumbers(op);
}

/**
 * Throws for a product of bool, which is not defined, unless no elements are multiplied. As in PyTorch, two vectors are
 * refused in any case.
 */
export function requireFactors(op: string, a: Tensor, b: Tensor): void {
  for (const each of [a, b]) if (!(each instanceof Tensor)) throw notATensor(op, each);
  const hasProducts = (a.count > 0 && b.count > 0) || (a.rank === 1 && b.rank === 1);
  if (!hasProducts) return;
  requireNumbers(op, a);
  requireNumbers(op, b);
}

/**
 * Runs `op` on a float32 copy of `a`, which is float16 or bfloat16, because its kernel does not take these. Returns the
 * result in the dtype of `a`.
 */
export function inFloat32(a: Tensor, op: (a: Tensor) => Tensor): Tensor {
  const wide = to(a, 'float32');
  const result = op(wide);
  const out = to(result, a.dtype);
  wide.dispose();
  result.dispose();
  return out;
}

/** Returns whether an op without kernels for float16 and bfloat16 must use inFloat32. */
export const needsFloat32 = (a: Tensor): boolean => isHalf(a.dtype);
/** Does the same as needsFloat32, for ops whose CUDA kernels accept float16 and bfloat16. */
export const needsFloat32OnCpu = (a: Tensor): boolean => isHalf(a.dtype) && a.device === 'cpu';

/** Returns whether the elements are floats. */
export function isFloatingPoint(a: Tensor): boolean {
  requireTensor('isFloatingPoint', a);
  return isFloat(a.dtype);
}
