// Pooling over signals, and variants of pooling over planes, as layers.

import { checkOptions } from '../../../checks/options.ts';
import { checkValue, positive } from '../../../checks/value-checks.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { checkOutputSize, maxPoolOptions, type OutputSize } from '../../../ops/layers/pool.ts';
import { type Pair, pairOf } from '../../../ops/layers/window.ts';
import {
  type AvgPool1dOptions,
  adaptiveAvgPool1d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  avgPool1d,
  avgPool1dOptions,
  type LpPoolOptions,
  lpPool1d,
  lpPool2d,
  lpPoolOptions,
  type MaxPool1dOptions,
  maxPool1d,
  rowWindow,
} from '../../../ops/spatial/pooling/pool.ts';
import { sizesFor } from '../../../ops/spatial/sizes.ts';
import { Module } from '../../module.ts';

/** Layer of maxPool1d(). */
export class MaxPool1d extends Module {
  /** Length of the window. */
  readonly kernelSize: number;
  /** Options of the operation, as they were given. */
  readonly options: MaxPool1dOptions;

  constructor(kernelSize: number, options: MaxPool1dOptions = {}) {
    super();
    checkOptions('MaxPool1d', options, maxPoolOptions);
    rowWindow('MaxPool1d', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, length], or the same without batch, and returns the result of each window. */
  forward(input: Tensor): Tensor {
    return maxPool1d(input, this.kernelSize, this.options);
  }
}

/** Layer of avgPool1d(). */
export class AvgPool1d extends Module {
  /** Length of the window. */
  readonly kernelSize: number;
  /** Options of the operation, as they were given. */
  readonly options: AvgPool1dOptions;

  constructor(kernelSize: number, options: AvgPool1dOptions = {}) {
    super();
    checkOptions('AvgPool1d', options, avgPool1dOptions);
    rowWindow('AvgPool1d', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, length], or the same without batch, and returns the result of each window. */
  forward(input: Tensor): Tensor {
    return avgPool1d(input, this.kernelSize, this.options);
  }
}

/** Layer of adaptiveAvgPool1d(). */
export class AdaptiveAvgPool1d extends Module {
  /** Length of the result. */
  readonly outputSize: number;

  constructor(outputSize: number) {
    super();
    sizesFor('AdaptiveAvgPool1d: outputSize', outputSize, 1, 1);
    this.outputSize = outputSize;
  }

  /** Takes [batch, channels, length], or the same without batch; returns `outputSize` in place of the last size. */
  forward(input: Tensor): Tensor {
    return adaptiveAvgPool1d(input, this.outputSize);
  }
}

/** Layer of adaptiveMaxPool1d(). */
export class AdaptiveMaxPool1d extends Module {
  /** Length of the result. */
  readonly outputSize: number;

  constructor(outputSize: number) {
    super();
    sizesFor('AdaptiveMaxPool1d: outputSize', outputSize, 1, 1);
    this.outputSize = outputSize;
  }

  /** Takes [batch, channels, length], or the same without batch; returns `outputSize` in place of the last size. */
  forward(input: Tensor): Tensor {
    return adaptiveMaxPool1d(input, this.outputSize);
  }
}

/** Layer of adaptiveMaxPool2d(). */
export class AdaptiveMaxPool2d extends Module {
  /** [height, width] of the result. One number applies to both; null is the input's size. */
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    super();
    checkOutputSize('AdaptiveMaxPool2d', outputSize);
    this.outputSize = outputSize;
  }

  /**
   * Takes [batch, channels, height, width], or the same without batch; returns `outputSize` in place of the last 2.
   */
  forward(input: Tensor): Tensor {
    return adaptiveMaxPool2d(input, this.outputSize);
  }
}

/** Layer of lpPool1d(). */
export class LPPool1d extends Module {
  /** Exponent of the norm. */
  readonly p: number;
  /** Length of the window. */
  readonly kernelSize: number;
  /** Options of the operation, as they were given. */
  readonly options: LpPoolOptions;

  constructor(p: number, kernelSize: number, options: LpPoolOptions = {}) {
    super();
    checkValue('LPPool1d: p', p, positive);
    checkOptions('LPPool1d', options, lpPoolOptions);
    rowWindow('LPPool1d', kernelSize, options as MaxPool1dOptions);
    this.p = p;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, length], or the same without batch, and returns the result of each window. */
  forward(input: Tensor): Tensor {
    return lpPool1d(input, this.p, this.kernelSize, this.options);
  }
}

/** Layer of lpPool2d(). */
export class LPPool2d extends Module {
  /** Exponent of the norm. */
  readonly p: number;
  /** [height, width] of the window; one number applies to both. */
  readonly kernelSize: Pair;
  /** Options of the operation, as they were given. */
  readonly options: LpPoolOptions;

  constructor(p: number, kernelSize: Pair, options: LpPoolOptions = {}) {
    super();
    checkValue('LPPool2d: p', p, positive);
    checkOptions('LPPool2d', options, lpPoolOptions);
    pairOf('LPPool2d: kernelSize', kernelSize, 1);
    pairOf('LPPool2d: stride', options.stride ?? kernelSize, 1);
    this.p = p;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, height, width], or the same without batch, and returns the result of each window. */
  forward(input: Tensor): Tensor {
    return lpPool2d(input, this.p, this.kernelSize, this.options);
  }
}
