// Convolution over signals, planes and volumes, as layers.

import { checkOptions, type OptionChecks } from '../../checks/options.ts';
import { type Check, flag, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { countOf } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { type Conv1dOptions, type ConvOptions, conv1d, conv2d, convOptions } from '../../ops/layers/conv.ts';
import type { Pair } from '../../ops/layers/window.ts';
import { type Conv3dOptions, conv3d, paddingOf } from '../../ops/spatial/conv3d.ts';
import { pad } from '../../ops/spatial/pad.ts';
import { sizesFor, type Triple } from '../../ops/spatial/sizes.ts';
import { declareFields } from '../fields.ts';
import { uniformParameter } from '../init.ts';
import { Module } from '../module.ts';

/** Padding of a convolution layer's input: with zeros, or as pad() does. */
export type PaddingMode = 'zeros' | 'reflect' | 'replicate' | 'circular';

/** Options of the convolution layers, in addition to those of the operation. */
export interface ConvLayerOptions {
  /** Whether there is a bias. Default true. */
  readonly bias?: boolean;
  /** Default 'zeros'. */
  readonly paddingMode?: PaddingMode;
}

const paddingMode: Check = oneOf('zeros', 'reflect', 'replicate', 'circular');
const convLayerOptions: OptionChecks = new Map([
  ...convOptions,
  ['bias', flag],
  ['paddingMode', paddingMode],
]);

/** Throws unless the number of channels is a multiple of the groups. */
export function checkChannels(
  layer: string,
  channels: Readonly<Record<string, number>>,
  groups: number,
): void {
  for (const [name, size] of Object.entries(channels)) {
    const fits = Number.isSafeInteger(size) && size >= 1 && size % groups === 0;
    if (!fits) throw badOption(`${layer}: ${name}`, `a multiple of groups ${groups}`, shown(size));
  }
}

type Options<O> = O & ConvLayerOptions;
type AnyOptions = Conv1dOptions | ConvOptions | Conv3dOptions;

/** Common base of the convolution layers. */
abstract class Convolution<O extends AnyOptions> extends Module {
  /** Kernels, [outChannels, inChannels ÷ groups, …kernelSize]. */
  weight: Tensor;
  /** Numbers that are added to the channels, [outChannels]; null without. */
  bias: Tensor | null;
  /** The options of the operation. */
  readonly options: O;
  /** 'zeros', or the elements of the input that are used as padding. */
  readonly paddingMode: PaddingMode;
  /** Sizes for pad(), if the layer does not pad with zeros. */
  readonly #sizes: readonly number[];

  constructor(
    rank: 1 | 2 | 3,
    inChannels: number,
    outChannels: number,
    kernelSize: number | readonly number[],
    options: Options<O>,
  ) {
    super();
    const layer = `Conv${rank}d`;
    checkOptions(layer, options, convLayerOptions);
    const { bias = true, paddingMode = 'zeros', ...rest } = options;
    const { groups = 1 } = rest;
    checkChannels(layer, { inChannels, outChannels }, groups);
    const kernel = sizesFor(`${layer}: kernelSize`, kernelSize, rank, 1);
    const stride = sizesFor(`${layer}: stride`, rest.stride ?? 1, rank, 1);
    const dilation = sizesFor(`${layer}: dilation`, rest.dilation ?? 1, rank, 1);
    const pads = paddingOf(layer, rest.padding ?? 0, kernel, stride, dilation);
    const fanIn = (inChannels / groups) * countOf(kernel);
    const bound = 1 / Math.sqrt(fanIn);
    this.weight = uniformParameter([outChannels, inChannels / groups, ...kernel], bound);
    this.bias = bias ? uniformParameter([outChannels], bound) : null;
    declareFields(this, { weight: 'parameter', bias: 'parameter' });
    this.paddingMode = paddingMode;
    this.#sizes = pads.toReversed().flatMap(({ before, total }) => [before, total - before]);
    this.options = { ...(rest as O), groups };
  }

  protected abstract convolved(input: Tensor, options: O): Tensor;

  /** Takes [batch, in, …], or the same without batch; returns [batch, out, …]. */
  forward(input: Tensor): Tensor {
    const { paddingMode: mode, options } = this;
    if (mode === 'zeros' || this.#sizes.every((size) => size === 0)) return this.convolved(input, options);
    return scope(() => this.convolved(pad(input, this.#sizes, { mode }), { ...options, padding: 0 }));
  }
}

/**
 * Maps x [batch, in, length] to [batch, out, …]; the batch may be absent. weight [out, in / groups, kernel] and bias
 * [out] start uniform in ±1/√(in / groups · kernel), which is PyTorch's default.
 */
export class Conv1d extends Convolution<Conv1dOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: number,
    options: Conv1dOptions & ConvLayerOptions = {},
  ) {
    super(1, inChannels, outChannels, kernelSize, options);
  }

  protected override convolved(input: Tensor, options: Conv1dOptions): Tensor {
    return conv1d(input, this.weight, this.bias, options);
  }
}

/**
 * Maps x [batch, in, height, width] to [batch, out, …]; the batch may be absent. weight [out, in / groups, kernel
 * height, kernel width] and bias [out] start uniform in ±1/√(in / groups · kernel height · kernel width), which is
 * PyTorch's default.
 */
export class Conv2d extends Convolution<ConvOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Pair,
    options: ConvOptions & ConvLayerOptions = {},
  ) {
    super(2, inChannels, outChannels, kernelSize, options);
  }

  protected override convolved(input: Tensor, options: ConvOptions): Tensor {
    return conv2d(input, this.weight, this.bias, options);
  }
}

/**
 * Maps x [batch, in, depth, height, width] to [batch, out, …]; the batch may be absent. weight [out, in / groups,
 * kernel depth, kernel height, kernel width] and bias [out] start as those of Conv2d.
 */
export class Conv3d extends Convolution<Conv3dOptions> {
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: Triple,
    options: Conv3dOptions & ConvLayerOptions = {},
  ) {
    super(3, inChannels, outChannels, kernelSize, options);
  }

  protected override convolved(input: Tensor, options: Conv3dOptions): Tensor {
    return conv3d(input, this.weight, this.bias, options);
  }
}
