// Normalisation over the last dimensions, as layers.
import { addLayerNorm, layerNorm, rmsNorm } from '../ops/index.ts';
import type { Shape } from '../shape.ts';
import type { Tensor } from '../tensor.ts';
import { constantParameter } from './init.ts';
import { Module } from './module.ts';

const shapeOf = (shape: number | Shape): Shape => (typeof shape === 'number' ? [shape] : [...shape]);

export interface LayerNormLayerOptions {
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
  /** Whether there is a weight. Default true. */
  readonly affine?: boolean;
  /** Whether there is a bias beside the weight. Default true. */
  readonly bias?: boolean;
}

/** (x − mean) ÷ √(variance + eps) · weight + bias over the last dimensions. weight starts as 1, bias as 0. */
export class LayerNorm extends Module {
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly shape: Shape;
  readonly eps: number;

  constructor(shape: number | Shape, options: LayerNormLayerOptions = {}) {
    super();
    const { eps = 1e-5, affine = true, bias = true } = options;
    this.shape = shapeOf(shape);
    this.eps = eps;
    this.weight = affine ? constantParameter(this.shape, 1) : null;
    this.bias = affine && bias ? constantParameter(this.shape, 0) : null;
  }

  forward(input: Tensor): Tensor {
    return layerNorm(input, this.shape, this);
  }

  /** [input + residual, its normalisation], in one pass over memory. */
  addForward(input: Tensor, residual: Tensor): [sum: Tensor, normed: Tensor] {
    return addLayerNorm(input, residual, this.shape, this);
  }
}

/** x ÷ √(mean of squares + eps) · weight over the last dimensions. weight starts as 1. */
export class RMSNorm extends Module {
  readonly weight: Tensor | null;
  readonly shape: Shape;
  readonly eps: number | undefined;

  /** `eps`: by default the smallest step from 1 of the input's dtype. */
  constructor(shape: number | Shape, options: { readonly eps?: number; readonly affine?: boolean } = {}) {
    super();
    this.shape = shapeOf(shape);
    this.eps = options.eps;
    this.weight = (options.affine ?? true) ? constantParameter(this.shape, 1) : null;
  }

  forward(input: Tensor): Tensor {
    const { shape, weight, eps } = this;
    return rmsNorm(input, shape, eps === undefined ? { weight } : { weight, eps });
  }
}
