// Layers that multiply by matrices: of one input, and of two.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { atLeastOne, checkValue, flag, nonNegativeInteger } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { bilinear, type LinearOptions, linear } from '../../ops/index.ts';
import { declareFields } from '../fields.ts';
import { uniformParameter } from '../init.ts';
import { Module } from '../module.ts';

const linearLayerOptions = optionChecks<{ readonly bias?: boolean }>({ bias: flag });

/**
 * Computes x · weightᵀ + bias over the last dimension. weight [out, in] and bias [out] start uniform in
 * ±1/√in, which is PyTorch's default (Kaiming uniform with a = √5). Without inputs, the bias starts as 0.
 */
export class Linear extends Module {
  /** Factors of the inputs, [outFeatures, inFeatures]. */
  weight: Tensor;
  /** Numbers that are added to the outputs, [outFeatures]; null without. */
  bias: Tensor | null;

  constructor(inFeatures: number, outFeatures: number, options: { readonly bias?: boolean } = {}) {
    super();
    checkValue('Linear: inFeatures', inFeatures, nonNegativeInteger);
    checkValue('Linear: outFeatures', outFeatures, nonNegativeInteger);
    checkOptions('Linear', options, linearLayerOptions);
    const bound = inFeatures === 0 ? 0 : 1 / Math.sqrt(inFeatures);
    this.weight = uniformParameter([outFeatures, inFeatures], bound);
    this.bias = (options.bias ?? true) ? uniformParameter([outFeatures], bound) : null;
    declareFields(this, { weight: 'parameter', bias: 'parameter' });
  }

  /** Computes the activation, if given, in the same kernel as the product. */
  forward(input: Tensor, activation?: LinearOptions['activation']): Tensor {
    return linear(input, this.weight, this.bias, { activation: activation ?? 'none' });
  }
}

/**
 * Computes bilinear() of two inputs [..., in1] and [..., in2]. weight [out, in1, in2] and bias [out] start uniform in
 * ±1/√in1, which is PyTorch's default.
 */
export class Bilinear extends Module {
  /** Factors of the products, [out, in1, in2]. */
  weight: Tensor;
  /** Numbers that are added to the outputs, [out]; null without. */
  bias: Tensor | null;

  constructor(
    in1Features: number,
    in2Features: number,
    outFeatures: number,
    options: { readonly bias?: boolean } = {},
  ) {
    super();
    checkOptions('Bilinear', options, linearLayerOptions);
    for (const [name, size] of Object.entries({ in1Features, in2Features }))
      checkValue(`Bilinear: ${name}`, size, atLeastOne);
    checkValue('Bilinear: outFeatures', outFeatures, nonNegativeInteger);
    const bound = 1 / Math.sqrt(in1Features);
    this.weight = uniformParameter([outFeatures, in1Features, in2Features], bound);
    this.bias = options.bias === false ? null : uniformParameter([outFeatures], bound);
    declareFields(this, { weight: 'parameter', bias: 'parameter' });
  }

  /** Takes [..., in1] and [..., in2]; returns [..., out]. */
  forward(input1: Tensor, input2: Tensor): Tensor {
    return bilinear(input1, input2, this.weight, this.bias);
  }
}
