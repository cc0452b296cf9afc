// Pooling, as layers.

import { checkOptions } from '../../checks/options.ts';
import type { Tensor } from '../../core/tensor.ts';
import {
  type AvgPoolOptions,
  adaptiveAvgPool2d,
  avgPool2d,
  avgPoolOptions,
  checkOutputSize,
  checkPoolSizes,
  type MaxPoolOptions,
  maxPool2d,
  maxPoolOptions,
  type OutputSize,
} from '../../ops/layers/pool.ts';
import type { Pair } from '../../ops/layers/window.ts';
import { Module } from '../module.ts';

/** Computes the largest element of each window. */
export class MaxPool2d extends Module {
  /** [height, width] of the window; one number applies to both. */
  readonly kernelSize: Pair;
  /** Options of the operation, as they were given. */
  readonly options: MaxPoolOptions;

  constructor(kernelSize: Pair, options: MaxPoolOptions = {}) {
    super();
    checkOptions('MaxPool2d', options, maxPoolOptions);
    checkPoolSizes('MaxPool2d', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, height, width], or the same without batch, and returns the result of each window. */
  forward(input: Tensor): Tensor {
    return maxPool2d(input, this.kernelSize, this.options);
  }
}

/** Computes the mean of each window. */
export class AvgPool2d extends Module {
  /** [height, width] of the window; one number applies to both. */
  readonly kernelSize: Pair;
  /** Options of the operation, as they were given. */
  readonly options: AvgPoolOptions;

  constructor(kernelSize: Pair, options: AvgPoolOptions = {}) {
    super();
    checkOptions('AvgPool2d', options, avgPoolOptions);
    checkPoolSizes('AvgPool2d', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, height, width], or the same without batch, and returns the result of each window. */
  forward(input: Tensor): Tensor {
    return avgPool2d(input, this.kernelSize, this.options);
  }
}

/** Computes the means of `outputSize` boxes, for inputs of any size; a size of null is the input's. */
export class AdaptiveAvgPool2d extends Module {
  /** [height, width] of the result. One number applies to both; null is the input's size. */
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    super();
    checkOutputSize('AdaptiveAvgPool2d', outputSize);
    this.outputSize = outputSize;
  }

  /**
   * Takes [batch, channels, height, width], or the same without batch; returns `outputSize` in place of the last 2.
   */
  forward(input: Tensor): Tensor {
    return adaptiveAvgPool2d(input, this.outputSize);
  }
}
