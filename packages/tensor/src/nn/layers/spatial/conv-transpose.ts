// Transposed convolution, as layers.

import { checkOptions, type OptionChecks } from '../../../checks/options.ts';
import { flag } from '../../../checks/value-checks.ts';
import { countOf } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import type { Pair } from '../../../ops/layers/window.ts';
import {
  type ConvTranspose1dOptions,
  type ConvTransposeOptions,
  convTranspose1d,
  convTranspose2d,
  convTransposeOptions,
  transposedSteps,
} from '../../../ops/spatial/conv-transpose.ts';
import { type ConvTranspose3dOptions, convTranspose3d } from '../../../ops/spatial/conv-transpose3d.ts';
import { sizesFor, type Triple } from '../../../ops/spatial/sizes.ts';
import { declareFields } from '../../fields.ts';
import { uniformParameter } from '../../init.ts';
import { Module } from '../../module.ts';
import { checkChannels } from '../conv.ts';

const layerOptions: OptionChecks = new Map([...convTransposeOptions, ['bias', flag]]);

type AnyOptions = ConvTranspose1dOptions | ConvTransposeOptions | ConvTranspose3dOptions;

/** Common base of the layers. */
abstract class TransposedConvolution<O extends AnyOptions> extends Module {
  /** Kernels, [inChannels, outChannels ÷ groups, …kernelSize]. */
  weight: Tensor;
  /** Numbers that are added to the channels, [outChannels]; null without. */
  bias: Tensor | null;
  /** The options of the operation. */
  readonly options: O;

  constructor(
    rank: 1 | 2 | 3,
    inChannels: number,
    outChannels: number,
    kernelSize: number | readonly number[],
    options: AnyOptions & { readonly bias?: boolean },
  ) {
    super();
    const layer = `ConvTranspose${rank}d`;
    checkOptions(layer, options, layerOptions);
    const { bias = true, ...rest } = options;
    const { groups = 1 } = rest;
    checkChannels(layer, { inChannels, outChannels }, groups);
    const kernel = sizesFor(`${layer}: kernelSize`, kernelSize, rank, 1);
    transposedSteps(layer, rest, rank);
    const shape = [inChannels, outChannels / groups, ...kernel];
    const bound = 1 / Math.sqrt(countOf(shape.slice(1)));
    this.weight = uniformParameter(shape, bound);
    this.bias = bias ? uniformParameter([outChannels], bound) : null;
    declareFields(this, { weight: 'parameter', bias: 'parameter' });
    this.options = { ...(rest as O), groups };
  }
}

/**
 * Maps x [batch, in, length] to [batch, out, …] as convTranspose1d does; the batch may be absent. weight [in, out /
 * groups, kernel] and bias [out] start uniform in ±1/√(out / groups · kernel), which is PyTorch's default.
 */
export class ConvTranspose1d extends TransposedConvolution<ConvTranspose1dOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: number,
    options: ConvTranspose1dOptions & { readonly bias?: boolean } = {},
  ) {
    super(1, inChannels, outChannels, kernelSize, options);
  }

  /** Takes [batch, in, length], or the same without batch; returns [batch, out, …]. */
  forward(input: Tensor): Tensor {
    return convTranspose1d(input, this.weight, this.bias, this.options);
  }
}

/**
 * Maps x [batch, in, height, width] to [batch, out, …] as convTranspose2d does; the batch may be absent. weight [in,
 * out / groups, kernel height, kernel width] and bias [out] start uniform in ±1/√(out / groups · kernel height · kernel
 * width), which is PyTorch's default.
 */
export class ConvTranspose2d extends TransposedConvolution<ConvTransposeOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Pair,
    options: ConvTransposeOptions & { readonly bias?: boolean } = {},
  ) {
    super(2, inChannels, outChannels, kernelSize, options);
  }

  /** Takes [batch, in, height, width], or the same without batch; returns [batch, out, …]. */
  forward(input: Tensor): Tensor {
    return convTranspose2d(input, this.weight, this.bias, this.options);
  }
}

/**
 * Maps x [batch, in, depth, height, width] to [batch, out, …] as convTranspose3d does; the batch may be absent. weight
 * [in, out / groups, kernel depth, kernel height, kernel width] and bias [out] start uniform in ±1/√(out / groups ·
 * kernel depth · kernel height · kernel width), which is PyTorch's default.
 */
export class ConvTranspose3d extends TransposedConvolution<ConvTranspose3dOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Triple,
    options: ConvTranspose3dOptions & { readonly bias?: boolean } = {},
  ) {
    super(3, inChannels, outChannels, kernelSize, options);
  }

  /** Takes [batch, in, depth, height, width], or the same without batch; returns [batch, out, …]. */
  forward(input: Tensor): Tensor {
    return convTranspose3d(input, this.weight, this.bias, this.options);
  }
}
