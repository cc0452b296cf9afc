// Multi-head attention with its projections. Parameter names in state dicts, and initial values, are those of PyTorch's
// MultiheadAttention, so its state dicts can be loaded. Tensors are [batch, time, width], which PyTorch calls
// batch_first.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { atLeastOne, checkValue, flag, tensorOrNull } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { linear, scaledDotProductAttention, selfAttention } from '../../ops/index.ts';
import { type AttentionOptions, attentionDropout } from '../../ops/layers/attention.ts';
import { declareFields } from '../fields.ts';
import { constantParameter, uniformParameter } from '../init.ts';
import { Module } from '../module.ts';
import { Linear } from './linear.ts';

/** Options of MultiHeadAttention. */
export interface MultiHeadAttentionOptions {
  /** Whether the projections have a bias. Default true. */
  readonly bias?: boolean;
  /** Probability, below 1, with which an attention weight is dropped while training. Default 0. */
  readonly dropout?: number;
  /** Whether query i attends only to keys 0 … i. Default false. */
  readonly causal?: boolean;
}

const multiHeadAttentionOptions = optionChecks<MultiHeadAttentionOptions>({
  bias: flag,
  dropout: attentionDropout,
  causal: flag,
});
const forwardOptions = optionChecks<Pick<AttentionOptions, 'mask'>>({ mask: tensorOrNull });

/** Attention with several heads, of the input to itself or to another sequence, with PyTorch's names of parameters. */
export class MultiHeadAttention extends Module {
  /** [3 · width, width]: the projections to queries, keys and values. */
  readonly inProjWeight: Tensor;
  /** Bias of the three projections, [3 · width]; null without. */
  readonly inProjBias: Tensor | null;
  /** Projection of the joined heads, [width, width]. */
  readonly outProj: Linear;
  /** Number of heads. */
  readonly heads: number;
  /** Width of inputs and outputs. */
  readonly width: number;
  /** Probability with which an attention weight is dropped while training. */
  readonly dropout: number;
  /** Whether query i attends only to keys 0 … i. */
  readonly causal: boolean;

  constructor(width: number, heads: number, options: MultiHeadAttentionOptions = {}) {
    super();
    checkOptions('MultiHeadAttention', options, multiHeadAttentionOptions);
    checkValue('MultiHeadAttention: heads', heads, atLeastOne);
    const { bias = true, dropout = 0, causal = false } = options;
    const fits = Number.isSafeInteger(width) && width > 0 && width % heads === 0;
    if (!fits) throw badOption('MultiHeadAttention: width', `a multiple of heads ${heads}`, shown(width));
    this.width = width;
    this.heads = heads;
    this.dropout = dropout;
    this.causal = causal;
    // Xavier uniform, with the fans of all three projections together.
    this.inProjWeight = uniformParameter([3 * width, width], Math.sqrt(6 / (4 * width)));
    this.inProjBias = bias ? constantParameter([3 * width], 0) : null;
    this.outProj = new Linear(width, width, { bias });
    this.outProj.bias?.detach().zero_();
    declareFields(this, { inProjWeight: 'parameter', inProjBias: 'parameter', outProj: 'module' });
  }

  protected override members(): Iterable<[string, unknown]> {
    return [
      ['in_proj_weight', this.inProjWeight],
      ['in_proj_bias', this.inProjBias],
      ['out_proj', this.outProj],
    ];
  }

  /**
   * Computes attention with queries from `input` [batch, time, width] and keys and values from `memory` [batch, keys,
   * width], by default the input itself. For the mask see AttentionOptions.
   */
  forward(input: Tensor, memory: Tensor = input, options: Pick<AttentionOptions, 'mask'> = {}): Tensor {
    checkOptions('MultiHeadAttention.forward', options, forwardOptions);
    const own: AttentionOptions = {
      causal: this.causal,
      dropout: this.training ? this.dropout : 0,
      mask: options.mask ?? null,
    };
    const attended =
      memory === input
        ? selfAttention(linear(input, this.inProjWeight, this.inProjBias), this.heads, own)
        : this.#across(input, memory, own);
    return this.outProj.forward(attended);
  }

  /** Computes attention of `input` to other keys and values. */
  #across(input: Tensor, memory: Tensor, options: AttentionOptions): Tensor {
    const { width, heads } = this;
    /**
     * Applies `parts` · width rows of the projection, from row `from` on. Returns the heads [batch, heads,
     * time, width of a head] of each part.
     */
    const projected = (x: Tensor, from: number, parts: number): Tensor[] => {
      const weight = this.inProjWeight.narrow(0, from, parts * width);
      const bias = this.inProjBias?.narrow(0, from, parts * width) ?? null;
      return linear(x, weight, bias)
        .split(width, -1)
        .map((part) => part.reshape([...x.shape.slice(0, -1), heads, width / heads]).transpose(-2, -3));
    };
    const [q] = projected(input, 0, 1);
    const [k, v] = projected(memory, width, 2);
    return scaledDotProductAttention(q!, k!, v!, options).transpose(-2, -3).reshape(input.shape);
  }
}
