// Convolution over planes, as a layer.

import { checkOptions, type OptionChecks } from '../../checks/options.ts';
import { flag } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { type ConvOptions, checkPadding, conv2d, convOptions } from '../../ops/layers/conv.ts';
import { type Pair, pairOf } from '../../ops/layers/window.ts';
import { uniformParameter } from '../init.ts';
import { Module } from '../module.ts';

const conv2dOptions: OptionChecks = new Map([...convOptions, ['bias', flag]]);

/**
 * Maps x [batch, in, height, width] to [batch, out, …]; the batch may be absent. weight [out, in / groups, kernel
 * height, kernel width] and bias [out] start uniform in ±1/√(in / groups · kernel height · kernel width), which is
 * PyTorch's default.
 */
export class Conv2d extends Module {
  readonly weight: Tensor;
  readonly bias: Tensor | null;
  readonly options: ConvOptions;

  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Pair,
    options: ConvOptions & { readonly bias?: boolean } = {},
  ) {
    super();
    checkOptions('Conv2d', options, conv2dOptions);
    const { bias = true, groups = 1, ...rest } = options;
    for (const [name, size] of Object.entries({ inChannels, outChannels })) {
      const fits = Number.isSafeInteger(size) && size >= 1 && size % groups === 0;
      if (!fits) throw badOption(`Conv2d: ${name}`, `a multiple of groups ${groups}`, shown(size));
    }
    const [high, wide] = pairOf('Conv2d: kernelSize', kernelSize, 1);
    pairOf('Conv2d: stride', rest.stride ?? 1, 1);
    pairOf('Conv2d: dilation', rest.dilation ?? 1, 1);
    checkPadding('Conv2d', rest.padding ?? 0);
    const fanIn = (inChannels / groups) * high * wide;
    const bound = 1 / Math.sqrt(fanIn);
    const shape = [outChannels, inChannels / groups, high, wide];
    this.weight = uniformParameter(shape, bound);
    this.bias = bias ? uniformParameter([outChannels], bound) : null;
    this.options = { ...rest, groups };
  }

  forward(input: Tensor): Tensor {
    return conv2d(input, this.weight, this.bias, this.options);
  }
}
