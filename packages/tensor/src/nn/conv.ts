// Convolution over planes, as a layer.
import { badOption } from '../errors.ts';
import { type ConvOptions, conv2d } from '../ops/index.ts';
import type { Tensor } from '../tensor.ts';
import { type Pair, pairOf } from '../window.ts';
import { uniformParameter } from './init.ts';
import { Module } from './module.ts';

/**
 * x [batch, in, height, width] to [batch, out, …]. weight [out, in / groups, kernel height, kernel width] and bias [out]
 * start uniform in ±1/√(in / groups · kernel height · kernel width), which is PyTorch's default.
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
    const { bias = true, groups = 1, ...rest } = options;
    for (const [name, size] of Object.entries({ inChannels, outChannels })) {
      const fits = Number.isSafeInteger(size) && size >= 1 && size % groups === 0;
      if (!fits) throw badOption(`Conv2d: ${name}`, `a multiple of groups ${groups}`, size);
    }
    const [high, wide] = pairOf('Conv2d: kernelSize', kernelSize, 1);
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
