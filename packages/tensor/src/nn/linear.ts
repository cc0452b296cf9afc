// A fully connected layer.
import { badOption } from '../errors.ts';
import { type LinearOptions, linear } from '../ops/index.ts';
import type { Tensor } from '../tensor.ts';
import { uniformParameter } from './init.ts';
import { Module } from './module.ts';

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
    this.weight = uniformParameter([outFeatures, inFeatures], bound);
    this.bias = (options.bias ?? true) ? uniformParameter([outFeatures], bound) : null;
  }

  /** The activation, if any, is computed along with the product. */
  forward(input: Tensor, activation?: LinearOptions['activation']): Tensor {
    return linear(input, this.weight, this.bias, { activation: activation ?? 'none' });
  }
}
