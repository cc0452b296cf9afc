// The transformer block with normalisation before each part (pre-norm), as in GPT-2.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import { atLeastOne, checkValue, flag } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { attentionDropout } from '../../ops/layers/attention.ts';
import { Module } from '../module.ts';
import { Dropout, GELU } from './activations.ts';
import { MultiHeadAttention } from './attention.ts';
import { Sequential } from './containers.ts';
import { Linear } from './linear.ts';
import { LayerNorm } from './norm.ts';

/** Options of TransformerBlock. */
export interface TransformerBlockOptions {
  /** Width of the hidden layer. Default 4 · width. */
  readonly mlpWidth?: number;
  /** Dropout probability for attention weights and for the output of each part. Default 0. */
  readonly dropout?: number;
  /** Whether position i attends only to positions 0 … i. Default false. */
  readonly causal?: boolean;
  /** Whether linear layers and normalisations have a bias. Default true. */
  readonly bias?: boolean;
}

const transformerBlockOptions = optionChecks<TransformerBlockOptions>({
  mlpWidth: atLeastOne,
  dropout: attentionDropout,
  causal: flag,
  bias: flag,
});

/** Computes x + attention(norm1(x)), then x + mlp(norm2(x)), for x [batch, time, width]. */
export class TransformerBlock extends Module {
  /** Normalisation before the attention. */
  readonly norm1: LayerNorm;
  /** Attention of the input to itself. */
  readonly attention: MultiHeadAttention;
  /** Normalisation before the mlp. */
  readonly norm2: LayerNorm;
  /** Linear layer, GELU, linear layer. */
  readonly mlp: Sequential;
  /** Dropout after each of the two parts. */
  readonly dropout: Dropout;

  constructor(width: number, heads: number, options: TransformerBlockOptions = {}) {
    super();
    checkValue('TransformerBlock: width', width, atLeastOne);
    checkOptions('TransformerBlock', options, transformerBlockOptions);
    const { mlpWidth = 4 * width, dropout = 0, causal = false, bias = true } = options;
    this.norm1 = new LayerNorm(width, { bias });
    this.attention = new MultiHeadAttention(width, heads, { dropout, causal, bias });
    this.norm2 = new LayerNorm(width, { bias });
    this.mlp = new Sequential(
      new Linear(width, mlpWidth, { bias }),
      new GELU(),
      new Linear(mlpWidth, width, { bias }),
    );
    this.dropout = new Dropout(dropout);
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    const attended = this.dropout.forward(this.attention.forward(this.norm1.forward(input)));
    const [sum, normed] = this.norm2.addForward(input, attended);
    return sum.add(this.dropout.forward(this.mlp.forward(normed)));
  }
}
