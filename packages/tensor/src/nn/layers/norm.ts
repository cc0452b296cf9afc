// Normalisation over the last dimensions, as layers.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { flag, nonNegative } from '../../checks/value-checks.ts';
import { checkedShape, type Shape } from '../../core/shape.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { addLayerNorm, layerNorm, rmsNorm } from '../../ops/index.ts';
import { declareFields } from '../fields.ts';
import { constantParameter } from '../init.ts';
import { Module } from '../module.ts';

/** Returns the sizes of the normalised dimensions. Throws if there are none. */
function shapeOf(layer: string, shape: number | Shape): Shape {
  const own = checkedShape(layer, typeof shape === 'number' ? [shape] : shape);
  if (own.length === 0) throw badOption(`${layer}: shape`, 'at least one size', shown(own));
  return own;
}

/** Options of LayerNorm. */
export interface LayerNormLayerOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
  /** Whether there is a weight. Default true. */
  readonly affine?: boolean;
  /** Whether there is a bias beside the weight; none without a weight. Default true. */
  readonly bias?: boolean;
}

const layerNormLayerOptions = optionChecks<LayerNormLayerOptions>({
  eps: nonNegative,
  affine: flag,
  bias: flag,
});

/** Computes (x − mean) ÷ √(variance + eps) · weight + bias over the last dimensions. weight starts as 1, bias as 0. */
export class LayerNorm extends Module {
  /** Factor of each normalised element, of `shape`; null without. */
  weight: Tensor | null;
  /** Number that is added to each, of `shape`; null without. */
  bias: Tensor | null;
  /** Sizes of the last dimensions, over which it normalises. */
  readonly shape: Shape;
  /** Number that is added to the variance. */
  readonly eps: number;

  constructor(shape: number | Shape, options: LayerNormLayerOptions = {}) {
    super();
    checkOptions('LayerNorm', options, layerNormLayerOptions);
    const { eps = 1e-5, affine = true, bias = true } = options;
    this.shape = shapeOf('LayerNorm', shape);
    this.eps = eps;
    this.weight = affine ? constantParameter(this.shape, 1) : null;
    this.bias = affine && bias ? constantParameter(this.shape, 0) : null;
    declareFields(this, { weight: 'parameter', bias: 'parameter' });
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    const { shape, weight, bias, eps } = this;
    return layerNorm(input, shape, { weight, bias, eps });
  }

  /** Returns [input + residual, the normalised sum], computed in one pass over memory. */
  addForward(input: Tensor, residual: Tensor): [sum: Tensor, normed: Tensor] {
    const { shape, weight, bias, eps } = this;
    return addLayerNorm(input, residual, shape, { weight, bias, eps });
  }
}

/** Options of RMSNorm. */
export interface RMSNormLayerOptions {
  /** Added to the mean of squares. Default: the machine epsilon of the input's dtype. */
  readonly eps?: number;
  /** Whether there is a weight. Default true. */
  readonly affine?: boolean;
}

const rmsNormLayerOptions = optionChecks<RMSNormLayerOptions>({ eps: nonNegative, affine: flag });

/** Computes x ÷ √(mean of squares + eps) · weight over the last dimensions. weight starts as 1. */
export class RMSNorm extends Module {
  /** Factor of each normalised element, of `shape`; null without. */
  weight: Tensor | null;
  /** Sizes of the last dimensions, over which it normalises. */
  readonly shape: Shape;
  /** Number that is added to the mean of squares; undefined is the machine epsilon of the input's dtype. */
  readonly eps: number | undefined;

  constructor(shape: number | Shape, options: RMSNormLayerOptions = {}) {
    super();
    checkOptions('RMSNorm', options, rmsNormLayerOptions);
    this.shape = shapeOf('RMSNorm', shape);
    this.eps = options.eps;
    this.weight = (options.affine ?? true) ? constantParameter(this.shape, 1) : null;
    declareFields(this, { weight: 'parameter' });
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    const { shape, weight, eps } = this;
    return rmsNorm(input, shape, eps === undefined ? { weight } : { weight, eps });
  }
}
