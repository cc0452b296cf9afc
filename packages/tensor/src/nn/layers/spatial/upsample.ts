// Resizing, as layers.

import { checkOptions } from '../../../checks/options.ts';
import type { Tensor } from '../../../core/tensor.ts';
import {
  checkInterpolation,
  type InterpolateOptions,
  interpolate,
  interpolateOptions,
} from '../../../ops/spatial/interpolate.ts';
import { Module } from '../../module.ts';

/** Layer of interpolate(). */
export class Upsample extends Module {
  /** Options of interpolate(), as they were given. */
  readonly options: InterpolateOptions;

  constructor(options: InterpolateOptions) {
    super();
    checkOptions('Upsample', options ?? {}, interpolateOptions);
    checkInterpolation('Upsample', options ?? {});
    this.options = options;
  }

  /** Takes [batch, channels, …]; resizes the dimensions behind the channels. */
  forward(input: Tensor): Tensor {
    return interpolate(input, this.options);
  }
}

type Sizes = Pick<InterpolateOptions, 'size' | 'scaleFactor'>;

/** Resizes planes with mode 'nearest'. */
export class UpsamplingNearest2d extends Upsample {
  constructor(options: Sizes) {
    super({ ...options, mode: 'nearest' });
  }
}

/** Resizes planes with mode 'bilinear' and `alignCorners`. */
export class UpsamplingBilinear2d extends Upsample {
  constructor(options: Sizes) {
    super({ ...options, mode: 'bilinear', alignCorners: true });
  }
}
