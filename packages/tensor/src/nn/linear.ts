// A fully connected layer.
import { badOption } from '../errors.ts';
import { linear } from '../ops/index.ts';
import { defaultGenerator } from '../random.ts';
import { allocate } from '../storage.ts';
import { Tensor } from '../tensor.ts';
import { Module } from './module.ts';
import { parameter } from './parameter.ts';

/** A parameter with values between −bound and bound from the default generator. */
export function uniformParameter(shape: readonly number[], count: number, bound: number): Tensor {
  const storage = allocate('float32', count);
  defaultGenerator().uniform(storage.memory.host as Float32Array, -bound, bound);
  return parameter(new Tensor(storage, shape));
}

/**
 * x · weightᵀ + bias over the last dimension. weight [out, in] and bias [out] start uniform in ±1/√in, which is
 * PyTorch's default (Kaiming uniform with a = √5).
 */
export class Linear extends Module {
  readonly weight: Tensor;
  readonly bias: Tensor | null;

  constructor(inFeatures: number, outFeatures: number, options: { readonly bias?: boolean } = {}) {
    super();
    for (const [name, size] of Object.entries({ inFeatures, outFeatures })) {
      if (!Number.isSafeInteger(size) || size < 1) throw badOption(`Linear: ${name}`, 'an integer ≥ 1', size);
    }
    const bound = 1 / Math.sqrt(inFeatures);
    this.weight = uniformParameter([outFeatures, inFeatures], outFeatures * inFeatures, bound);
    this.bias = (options.bias ?? true) ? uniformParameter([outFeatures], outFeatures, bound) : null;
  }

  forward(input: Tensor): Tensor {
    return linear(input, this.weight, this.bias);
  }
}
