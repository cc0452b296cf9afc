// Normalisation over parts of one sample, as layers. Parameters and buffers are named as in PyTorch's state dict.

import { checkOptions, optionChecks } from '../../../checks/options.ts';
import {
  atLeastOne,
  checkValue,
  finite,
  flag,
  nonNegative,
  nonNegativeInteger,
} from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { ones, zeros } from '../../../core/creation.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, needsRank, shown } from '../../../errors.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import { squeeze, unsqueeze } from '../../../ops/shape/views.ts';
import {
  groupNorm,
  instanceNorm,
  type LocalResponseNormOptions,
  localResponseNorm,
  localResponseNormOptions,
} from '../../../ops/spatial/group-norm.ts';
import { buffer } from '../../buffer.ts';
import { declareFields } from '../../fields.ts';
import { constantParameter } from '../../init.ts';
import { Module } from '../../module.ts';

/** Options of GroupNorm. */
export interface GroupNormLayerOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
  /** Whether there are a weight, initially 1, and a bias, initially 0. Default true. */
  readonly affine?: boolean;
}

const groupNormLayerOptions = optionChecks<GroupNormLayerOptions>({ eps: nonNegative, affine: flag });

/** Layer of groupNorm(): normalises each of `numGroups` groups of the channels of [batch, channels, …]. */
export class GroupNorm extends Module {
  /** Factor of each channel, [channels]; null without. */
  weight: Tensor | null;
  /** Number that is added to each channel, [channels]; null without. */
  bias: Tensor | null;
  /** Number of groups into which channels are divided. */
  readonly numGroups: number;
  /** Number that is added to the variance. */
  readonly eps: number;

  constructor(numGroups: number, numChannels: number, options: GroupNormLayerOptions = {}) {
    super();
    checkOptions('GroupNorm', options, groupNormLayerOptions);
    checkValue('GroupNorm: numGroups', numGroups, atLeastOne);
    const fits = Number.isSafeInteger(numChannels) && numChannels >= 0 && numChannels % numGroups === 0;
    if (!fits)
      throw badOption('GroupNorm: numChannels', `a multiple of groups ${numGroups}`, shown(numChannels));
    const { eps = 1e-5, affine = true } = options;
    this.numGroups = numGroups;
    this.eps = eps;
    this.weight = affine ? constantParameter([numChannels], 1) : null;
    this.bias = affine ? constantParameter([numChannels], 0) : null;
    declareFields(this, { weight: 'parameter', bias: 'parameter' });
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    const { weight, bias, eps } = this;
    return groupNorm(input, this.numGroups, { weight, bias, eps });
  }
}

/** Options of the instance norm layers. */
export interface InstanceNormLayerOptions {
  /** Default 1e-5. */
  readonly eps?: number;
  /** Weight of the new statistics at each step; null keeps the running ones as they are. Default 0.1. */
  readonly momentum?: number | null;
  /** Whether there are a weight, initially 1, and a bias, initially 0. Default false. */
  readonly affine?: boolean;
  /** Whether to keep running mean and variance, which evaluation then uses. Default false. */
  readonly trackRunningStats?: boolean;
}

const instanceNormLayerOptions = optionChecks<InstanceNormLayerOptions>({
  eps: nonNegative,
  momentum: { expected: 'a number or null', fits: (value) => value === null || finite.fits(value) },
  affine: flag,
  trackRunningStats: flag,
});

/** Common base of the instance norm layers. */
abstract class InstanceNorm extends Module {
  /** Factor of each channel, [channels]; null without. */
  weight: Tensor | null;
  /** Number that is added to each channel, [channels]; null without. */
  bias: Tensor | null;
  /** Running mean of each channel, [channels]; null without. */
  readonly runningMean: Tensor | null;
  /** Running variance of each channel, [channels]; null without. */
  readonly runningVar: Tensor | null;
  /** Stays 0, as in PyTorch, whose state dicts have it. int64. */
  readonly numBatchesTracked: Tensor | null;
  /** Number that is added to the variance. */
  readonly eps: number;
  /** Weight of a new batch in the running statistics; null keeps them as they are. */
  readonly momentum: number | null;
  readonly #layer: string;
  readonly #rank: number;

  constructor(layer: string, rank: number, numFeatures: number, options: InstanceNormLayerOptions) {
    super();
    checkValue(`${layer}: numFeatures`, numFeatures, nonNegativeInteger);
    checkOptions(layer, options, instanceNormLayerOptions);
    const { eps = 1e-5, momentum = 0.1, affine = false, trackRunningStats = false } = options;
    this.#layer = layer;
    this.#rank = rank;
    this.eps = eps;
    this.momentum = momentum;
    this.weight = affine ? constantParameter([numFeatures], 1) : null;
    this.bias = affine ? constantParameter([numFeatures], 0) : null;
    this.runningMean = trackRunningStats ? buffer(zeros([numFeatures])) : null;
    this.runningVar = trackRunningStats ? buffer(ones([numFeatures])) : null;
    this.numBatchesTracked = trackRunningStats ? buffer(zeros([], { dtype: 'int64' })) : null;
    declareFields(this, {
      ...{ weight: 'parameter', bias: 'parameter' },
      ...{ runningMean: 'buffer', runningVar: 'buffer', numBatchesTracked: 'buffer' },
    });
  }

  protected override *members(): Iterable<[string, unknown]> {
    yield ['weight', this.weight];
    yield ['bias', this.bias];
    yield ['running_mean', this.runningMean];
    yield ['running_var', this.runningVar];
    yield ['num_batches_tracked', this.numBatchesTracked];
  }

  /** Returns a tensor of the same shape. While training, updates the running statistics, if it has them. */
  forward(input: Tensor): Tensor {
    requireTensor(this.#layer, input);
    const [least, most] = [this.#rank + 1, this.#rank + 2];
    if (input.rank !== least && input.rank !== most)
      throw needsRank(this.#layer, `${least} or ${most}`, input.shape);
    return input.rank === most
      ? this.#normed(input)
      : scope(() => squeeze(this.#normed(unsqueeze(input, 0)), 0));
  }

  #normed(input: Tensor): Tensor {
    const { weight, bias, eps, runningMean, runningVar } = this;
    return instanceNorm(input, runningMean, runningVar, {
      weight,
      bias,
      eps,
      momentum: this.momentum ?? 0,
      useInputStats: this.training || runningMean === null,
    });
  }
}

/** Normalises each channel of each sample of [batch, channels, length]; the batch may be absent. */
export class InstanceNorm1d extends InstanceNorm {
  constructor(numFeatures: number, options: InstanceNormLayerOptions = {}) {
    super('InstanceNorm1d', 1, numFeatures, options);
  }
}

/** Normalises each channel of each sample of [batch, channels, height, width]; the batch may be absent. */
export class InstanceNorm2d extends InstanceNorm {
  constructor(numFeatures: number, options: InstanceNormLayerOptions = {}) {
    super('InstanceNorm2d', 2, numFeatures, options);
  }
}

/** Normalises each channel of each sample of [batch, channels, depth, height, width]; the batch may be absent. */
export class InstanceNorm3d extends InstanceNorm {
  constructor(numFeatures: number, options: InstanceNormLayerOptions = {}) {
    super('InstanceNorm3d', 3, numFeatures, options);
  }
}

/** Layer of localResponseNorm(). */
export class LocalResponseNorm extends Module {
  /** Number of neighbouring channels in each mean. */
  readonly size: number;
  /** Options of the operation, as they were given. */
  readonly options: LocalResponseNormOptions;

  constructor(size: number, options: LocalResponseNormOptions = {}) {
    super();
    checkValue('LocalResponseNorm: size', size, atLeastOne);
    checkOptions('LocalResponseNorm', options, localResponseNormOptions);
    this.size = size;
    this.options = options;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return localResponseNorm(input, this.size, this.options);
  }
}
