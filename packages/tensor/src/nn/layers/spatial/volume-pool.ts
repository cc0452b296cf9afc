// Pooling over volumes, as layers.
import { checkOptions } from '../../../checks/options.ts';
import { checkValue, positive } from '../../../checks/value-checks.ts';
import type { Tensor } from '../../../core/tensor.ts';
import {
  type AvgPool3dOptions,
  adaptiveAvgPool3d,
  adaptiveMaxPool3d,
  avgPool3d,
  avgPool3dOptions,
  checkOutputSize3d,
  type LpPool3dOptions,
  lpPool3d,
  lpPool3dOptions,
  type MaxPool3dOptions,
  maxPool3d,
  maxPool3dOptions,
  type OutputSize3d,
  windowsOf,
} from '../../../ops/spatial/pooling/volumes.ts';
import type { Triple } from '../../../ops/spatial/sizes.ts';
import { Module } from '../../module.ts';

/** Layer of maxPool3d(). */
export class MaxPool3d extends Module {
  /** [depth, height, width] of the window; one number applies to all. */
  readonly kernelSize: Triple;
  /** Options of the operation, as they were given. */
  readonly options: MaxPool3dOptions;

  constructor(kernelSize: Triple, options: MaxPool3dOptions = {}) {
    super();
    checkOptions('MaxPool3d', options, maxPool3dOptions);
    windowsOf('MaxPool3d', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /**
   * Takes [batch, channels, depth, height, width], or the same without batch, and returns the result of each window.
   */
  forward(input: Tensor): Tensor {
    return maxPool3d(input, this.kernelSize, this.options);
  }
}

/** Layer of avgPool3d(). */
export class AvgPool3d extends Module {
  /** [depth, height, width] of the window; one number applies to all. */
  readonly kernelSize: Triple;
  /** Options of the operation, as they were given. */
  readonly options: AvgPool3dOptions;

  constructor(kernelSize: Triple, options: AvgPool3dOptions = {}) {
    super();
    checkOptions('AvgPool3d', options, avgPool3dOptions);
    windowsOf('AvgPool3d', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /**
   * Takes [batch, channels, depth, height, width], or the same without batch, and returns the result of each window.
   */
  forward(input: Tensor): Tensor {
    return avgPool3d(input, this.kernelSize, this.options);
  }
}

/** Layer of adaptiveAvgPool3d(). */
export class AdaptiveAvgPool3d extends Module {
  /** [depth, height, width] of the result. One number applies to all; null is the input's size. */
  readonly outputSize: OutputSize3d;

  constructor(outputSize: OutputSize3d) {
    super();
    checkOutputSize3d('AdaptiveAvgPool3d', outputSize);
    this.outputSize = outputSize;
  }

  /**
   * Takes [batch, channels, depth, height, width], or the same without batch; returns `outputSize` in place of the
   * last 3.
   */
  forward(input: Tensor): Tensor {
    return adaptiveAvgPool3d(input, this.outputSize);
  }
}

/** Layer of adaptiveMaxPool3d(). */
export class AdaptiveMaxPool3d extends Module {
  /** [depth, height, width] of the result. One number applies to all; null is the input's size. */
  readonly outputSize: OutputSize3d;

  constructor(outputSize: OutputSize3d) {
    super();
    checkOutputSize3d('AdaptiveMaxPool3d', outputSize);
    this.outputSize = outputSize;
  }

  /**
   * Takes [batch, channels, depth, height, width], or the same without batch; returns `outputSize` in place of the
   * last 3.
   */
  forward(input: Tensor): Tensor {
    return adaptiveMaxPool3d(input, this.outputSize);
  }
}

/** Layer of lpPool3d(). */
export class LPPool3d extends Module {
  /** Exponent of the norm. */
  readonly p: number;
  /** [depth, height, width] of the window; one number applies to all. */
  readonly kernelSize: Triple;
  /** Options of the operation, as they were given. */
  readonly options: LpPool3dOptions;

  constructor(p: number, kernelSize: Triple, options: LpPool3dOptions = {}) {
    super();
    checkValue('LPPool3d: p', p, positive);
    checkOptions('LPPool3d', options, lpPool3dOptions);
    windowsOf('LPPool3d', kernelSize, options);
    this.p = p;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /**
   * Takes [batch, channels, depth, height, width], or the same without batch, and returns the result of each window.
   */
  forward(input: Tensor): Tensor {
    return lpPool3d(input, this.p, this.kernelSize, this.options);
  }
}
