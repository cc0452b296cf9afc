// Layers without parameters that rearrange or drop elements.

import { atLeastOne, checkValue, integer, probability } from '../../../checks/value-checks.ts';
import { checkedShape, type Shape } from '../../../core/shape.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { type Pair, pairOf } from '../../../ops/layers/window.ts';
import { unflatten } from '../../../ops/shape/rearrange.ts';
import { type ColumnOptions, col2im, columnWindow, im2col } from '../../../ops/spatial/columns.ts';
import {
  alphaDropout,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from '../../../ops/spatial/dropout.ts';
import { channelShuffle, pixelShuffle, pixelUnshuffle } from '../../../ops/spatial/shuffle.ts';
import { Module } from '../../module.ts';

/** Layer of im2col(): makes columns of windows. */
export class Unfold extends Module {
  readonly kernelSize: Pair;
  readonly options: ColumnOptions;

  constructor(kernelSize: Pair, options: ColumnOptions = {}) {
    super();
    columnWindow('Unfold', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(input: Tensor): Tensor {
    return im2col(input, this.kernelSize, this.options);
  }
}

/** Layer of col2im(): adds up columns to planes of `outputSize`. */
export class Fold extends Module {
  readonly outputSize: Pair;
  readonly kernelSize: Pair;
  readonly options: ColumnOptions;

  constructor(outputSize: Pair, kernelSize: Pair, options: ColumnOptions = {}) {
    super();
    pairOf('Fold: outputSize', outputSize, 1);
    columnWindow('Fold', kernelSize, options);
    this.outputSize = outputSize;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(input: Tensor): Tensor {
    return col2im(input, this.outputSize, this.kernelSize, this.options);
  }
}

/** Layer of pixelShuffle(). */
export class PixelShuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    super();
    checkValue('PixelShuffle: factor', factor, atLeastOne);
    this.factor = factor;
  }

  forward(input: Tensor): Tensor {
    return pixelShuffle(input, this.factor);
  }
}

/** Layer of pixelUnshuffle(). */
export class PixelUnshuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    super();
    checkValue('PixelUnshuffle: factor', factor, atLeastOne);
    this.factor = factor;
  }

  forward(input: Tensor): Tensor {
    return pixelUnshuffle(input, this.factor);
  }
}

/** Layer of channelShuffle(). */
export class ChannelShuffle extends Module {
  readonly groups: number;

  constructor(groups: number) {
    super();
    checkValue('ChannelShuffle: groups', groups, atLeastOne);
    this.groups = groups;
  }

  forward(input: Tensor): Tensor {
    return channelShuffle(input, this.groups);
  }
}

/** Layer of unflatten(): splits dimension `dim` into `sizes`, of which one may be −1. */
export class Unflatten extends Module {
  readonly dim: number;
  readonly sizes: Shape;

  constructor(dim: number, sizes: Shape) {
    super();
    checkValue('Unflatten: dim', dim, integer);
    checkedShape('Unflatten', Array.isArray(sizes) ? sizes.map((size) => (size === -1 ? 1 : size)) : sizes);
    this.dim = dim;
    this.sizes = [...sizes];
  }

  forward(input: Tensor): Tensor {
    return unflatten(input, this.dim, this.sizes);
  }
}

/** Common base of the layers that drop elements while training. */
abstract class Dropping extends Module {
  readonly p: number;

  constructor(layer: string, p: number) {
    super();
    checkValue(`${layer}: p`, p, probability);
    this.p = p;
  }
}

/** Drops channels while training, as dropout1d() does. */
export class Dropout1d extends Dropping {
  constructor(p = 0.5) {
    super('Dropout1d', p);
  }

  forward(input: Tensor): Tensor {
    return dropout1d(input, this.p, { training: this.training });
  }
}

/** Drops channels while training, as dropout2d() does. */
export class Dropout2d extends Dropping {
  constructor(p = 0.5) {
    super('Dropout2d', p);
  }

  forward(input: Tensor): Tensor {
    return dropout2d(input, this.p, { training: this.training });
  }
}

/** Drops channels while training, as dropout3d() does. */
export class Dropout3d extends Dropping {
  constructor(p = 0.5) {
    super('Dropout3d', p);
  }

  forward(input: Tensor): Tensor {
    return dropout3d(input, this.p, { training: this.training });
  }
}

/** Drops elements while training, as alphaDropout() does. */
export class AlphaDropout extends Dropping {
  constructor(p = 0.5) {
    super('AlphaDropout', p);
  }

  forward(input: Tensor): Tensor {
    return alphaDropout(input, this.p, { training: this.training });
  }
}

/** Drops whole channels while training, as featureAlphaDropout() does. */
export class FeatureAlphaDropout extends Dropping {
  constructor(p = 0.5) {
    super('FeatureAlphaDropout', p);
  }

  forward(input: Tensor): Tensor {
    return featureAlphaDropout(input, this.p, { training: this.training });
  }
}
