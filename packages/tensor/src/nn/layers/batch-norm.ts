// Batch normalisation, as layers. Parameters and buffers are named as in PyTorch's state dict.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { atLeastOne, checkValue, finite, flag, nonNegative } from '../../checks/value-checks.ts';
import { ones, zeros } from '../../core/creation.ts';
import type { Tensor } from '../../core/tensor.ts';
import { needsRank } from '../../errors.ts';
import { requireTensor } from '../../ops/elementwise/convert.ts';
import { type BatchNormSync, batchNorm } from '../../ops/index.ts';
import { buffer } from '../buffer.ts';
import { declareFields } from '../fields.ts';
import { Module } from '../module.ts';
import { parameter } from '../parameter.ts';

/** Options of the batch norm layers. */
export interface BatchNormLayerOptions {
  /** Default 1e-5. */
  readonly eps?: number;
  /** Weight of the new statistics at each step; null makes the running ones the mean over all steps. Default 0.1. */
  readonly momentum?: number | null;
  /** Whether there are a weight, initially 1, and a bias, initially 0. Default true. */
  readonly affine?: boolean;
  /** Whether to keep running mean and variance. Without them, evaluation uses those of the batch. Default true. */
  readonly trackRunningStats?: boolean;
}

const batchNormLayerOptions = optionChecks<BatchNormLayerOptions>({
  eps: nonNegative,
  momentum: { expected: 'a number or null', fits: (value) => value === null || finite.fits(value) },
  affine: flag,
  trackRunningStats: flag,
});

/** Common base of BatchNorm1d and BatchNorm2d. */
export abstract class BatchNorm extends Module {
  /** Factor of each channel, [channels]; null without. */
  weight: Tensor | null;
  /** Number that is added to each channel, [channels]; null without. */
  bias: Tensor | null;
  /** Running mean of each channel, [channels]; null without. */
  readonly runningMean: Tensor | null;
  /** Running variance of each channel, [channels]; null without. */
  readonly runningVar: Tensor | null;
  /** Number of calls of forward while training, int64. */
  readonly numBatchesTracked: Tensor | null;
  /** Number that is added to the variance. */
  readonly eps: number;
  /** Weight of a new batch in the running statistics; null averages over all batches. */
  readonly momentum: number | null;
  /** Combines the batches of several processes into one while training; null normalises each batch alone. */
  sync: BatchNormSync | null = null;

  constructor(numFeatures: number, options: BatchNormLayerOptions = {}) {
    super();
    checkValue('BatchNorm: numFeatures', numFeatures, atLeastOne);
    checkOptions('BatchNorm', options, batchNormLayerOptions);
    const { eps = 1e-5, momentum = 0.1, affine = true, trackRunningStats = true } = options;
    this.eps = eps;
    this.momentum = momentum;
    this.weight = affine ? parameter(ones([numFeatures])) : null;
    this.bias = affine ? parameter(zeros([numFeatures])) : null;
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

  /** Throws ERR_TENSOR_SHAPE for an input whose number of dimensions the layer does not accept. */
  protected abstract checkRank(input: Tensor): void;

  /** Returns a tensor of the same shape. While training, updates the running statistics. */
  forward(input: Tensor): Tensor {
    requireTensor('BatchNorm', input);
    this.checkRank(input);
    const { weight, bias, eps, sync, runningMean, runningVar, numBatchesTracked } = this;
    let { momentum } = this;
    if (this.training && numBatchesTracked) {
      numBatchesTracked.add_(1);
      momentum ??= 1 / numBatchesTracked.item();
    }
    const training = this.training || runningMean === null;
    return batchNorm(input, runningMean, runningVar, {
      weight,
      bias,
      eps,
      momentum: momentum ?? 0,
      training,
      sync: this.training ? sync : null,
    });
  }
}

/** Normalises [batch, features] or [batch, features, length] per feature. */
export class BatchNorm1d extends BatchNorm {
  protected override checkRank(input: Tensor): void {
    if (input.rank !== 2 && input.rank !== 3) throw needsRank('BatchNorm1d', '2 or 3', input.shape);
  }
}

/** Normalises [batch, channels, height, width] per channel. */
export class BatchNorm2d extends BatchNorm {
  protected override checkRank(input: Tensor): void {
    if (input.rank !== 4) throw needsRank('BatchNorm2d', 4, input.shape);
  }
}

/** Normalises [batch, channels, depth, height, width] per channel. */
export class BatchNorm3d extends BatchNorm {
  protected override checkRank(input: Tensor): void {
    if (input.rank !== 5) throw needsRank('BatchNorm3d', 5, input.shape);
  }
}
