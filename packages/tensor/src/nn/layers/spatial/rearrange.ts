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
  /** [height, width] of the window; one number applies to both. */
  readonly kernelSize: Pair;
  /** Options of the operation, as they were given. */
  readonly options: ColumnOptions;

  constructor(kernelSize: Pair, options: ColumnOptions = {}) {
    super();
    columnWindow('Unfold', kernelSize, options);
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels, height, width]; returns [batch, channels · window elements, windows]. */
  forward(input: Tensor): Tensor {
    return im2col(input, this.kernelSize, this.options);
  }
}

/** Layer of col2im(): adds up columns to planes of `outputSize`. */
export class Fold extends Module {
  /** [height, width] of the result; one number applies to both. */
  readonly outputSize: Pair;
  /** [height, width] of the window; one number applies to both. */
  readonly kernelSize: Pair;
  /** Options of the operation, as they were given. */
  readonly options: ColumnOptions;

  constructor(outputSize: Pair, kernelSize: Pair, options: ColumnOptions = {}) {
    super();
    pairOf('Fold: outputSize', outputSize, 1);
    columnWindow('Fold', kernelSize, options);
    this.outputSize = outputSize;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  /** Takes [batch, channels · window elements, windows]; returns [batch, channels, ...outputSize]. */
  forward(input: Tensor): Tensor {
    return col2im(input, this.outputSize, this.kernelSize, this.options);
  }
}

/** Layer of pixelShuffle(). */
export class PixelShuffle extends Module {
  /** Factor by which height and width grow. */
  readonly factor: number;

  constructor(factor: number) {
    super();
    checkValue('PixelShuffle: factor', factor, atLeastOne);
    this.factor = factor;
  }

  /** Takes [..., channels · factor², height, width]; returns [..., channels, height · factor, width · factor]. */
  forward(input: Tensor): Tensor {
    return pixelShuffle(input, this.factor);
  }
}

/** Layer of pixelUnshuffle(). */
export class PixelUnshuffle extends Module {
  /** Factor by which height and width shrink. */
  readonly factor: number;

  constructor(factor: number) {
    super();
    checkValue('PixelUnshuffle: factor', factor, atLeastOne);
    this.factor = factor;
  }

  /** Takes [..., channels, height · factor, width · factor]; returns [..., channels · factor², height, width]. */
  forward(input: Tensor): Tensor {
    return pixelUnshuffle(input, this.factor);
  }
}

/** Layer of channelShuffle(). */
export class ChannelShuffle extends Module {
  /** Number of groups of channels. */
  readonly groups: number;

  constructor(groups: number) {
    super();
    checkValue('ChannelShuffle: groups', groups, atLeastOne);
    this.groups = groups;
  }

  /** Takes [batch, channels, …]; returns the same shape. */
  forward(input: Tensor): Tensor {
    return channelShuffle(input, this.groups);
  }
}

/** Layer of unflatten(): splits dimension `dim` into `sizes`, of which one may be −1. */
export class Unflatten extends Module {
  /** Dimension that is split. */
  readonly dim: number;
  /** Sizes that replace the size of `dim`; −1 is computed from the others. */
  readonly sizes: Shape;

  constructor(dim: number, sizes: Shape) {
    super();
    checkValue('Unflatten: dim', dim, integer);
    checkedShape('Unflatten', Array.isArray(sizes) ? sizes.map((size) => (size === -1 ? 1 : size)) : sizes);
    this.dim = dim;
    this.sizes = [...sizes];
  }

  /** Returns the same elements with more dimensions. */
  forward(input: Tensor): Tensor {
    return unflatten(input, this.dim, this.sizes);
  }
}

/** Common base of the layers that drop elements while training. */
abstract class Dropping extends Module {
  /** Probability of a drop while training. */
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

  /** Returns a tensor of the same shape; the input itself in evaluation. */
  forward(input: Tensor): Tensor {
    return dropout1d(input, this.p, { training: this.training });
  }
}

/** Drops channels while training, as dropout2d() does. */
export class Dropout2d extends Dropping {
  constructor(p = 0.5) {
    super('Dropout2d', p);
  }

  /** Returns a tensor of the same shape; the input itself in evaluation. */
  forward(input: Tensor): Tensor {
    return dropout2d(input, this.p, { training: this.training });
  }
}

/** Drops channels while training, as dropout3d() does. */
export class Dropout3d extends Dropping {
  constructor(p = 0.5) {
    super('Dropout3d', p);
  }

  /** Returns a tensor of the same shape; the input itself in evaluation. */
  forward(input: Tensor): Tensor {
    return dropout3d(input, this.p, { training: this.training });
  }
}

/** Drops elements while training, as alphaDropout() does. */
export class AlphaDropout extends Dropping {
  constructor(p = 0.5) {
    super('AlphaDropout', p);
  }

  /** Returns a tensor of the same shape; the input itself in evaluation. */
  forward(input: Tensor): Tensor {
    return alphaDropout(input, this.p, { training: this.training });
  }
}

/** Drops whole channels while training, as featureAlphaDropout() does. */
export class FeatureAlphaDropout extends Dropping {
  constructor(p = 0.5) {
    super('FeatureAlphaDropout', p);
  }

  /** Returns a tensor of the same shape; the input itself in evaluation. */
  forward(input: Tensor): Tensor {
    return featureAlphaDropout(input, this.p, { training: this.training });
  }
}
