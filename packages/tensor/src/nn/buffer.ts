// Marks tensors as buffers, which a module saves and loads but does not train, such as running means.

import { notOneTensor } from '../checks/argument-errors.ts';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { flag } from '../checks/value-checks.ts';
import { keep } from '../core/context.ts';
import { Tensor } from '../core/tensor.ts';

/** Options of buffer(). */
export interface BufferOptions {
  /** Whether the buffer is part of the state dict. Default true. */
  readonly persistent?: boolean;
}

const bufferOptions = optionChecks<BufferOptions>({ persistent: flag });

const buffers = new WeakMap<Tensor, boolean>();

/** Makes `tensor` a buffer of the module that holds it in a field. Scopes and backward do not dispose it. */
export function buffer(tensor: Tensor, options: BufferOptions = {}): Tensor {
  checkOptions('buffer', options, bufferOptions);
  if (!(tensor instanceof Tensor)) throw notOneTensor('buffer', tensor);
  buffers.set(keep(tensor), options.persistent ?? true);
  return tensor;
}

export const isBuffer = (value: unknown): value is Tensor => value instanceof Tensor && buffers.has(value);
export const isPersistent = (tensor: Tensor): boolean => buffers.get(tensor) === true;
