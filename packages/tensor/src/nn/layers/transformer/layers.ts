// One layer of PyTorch's transformer: an encoder layer and a decoder layer.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { badTransformerInput } from '../../../checks/sequence-errors.ts';
import {
  atLeastOne,
  type Check,
  checkValue,
  flag,
  nonNegative,
  nonNegativeInteger,
  tensorOrNull,
} from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { badOption, shown } from '../../../errors.ts';
import { requireTensor } from '../../../ops/elementwise/convert.ts';
import { add } from '../../../ops/index.ts';
import { attentionDropout } from '../../../ops/layers/attention.ts';
import { Module } from '../../module.ts';
import { Dropout } from '../activations.ts';
import { Linear } from '../linear.ts';
import { LayerNorm } from '../norm.ts';
import { MultiheadAttention } from './multihead-attention.ts';

/** Options of the layers of a transformer. */
export interface TransformerLayerOptions {
  /** Width of the hidden layer. Default 2048. */
  readonly dimFeedforward?: number;
  /** Probability, below 1, of dropout for weights of attention and for the results of each part. Default 0.1. */
  readonly dropout?: number;
  /** Between the two linear layers. Default 'relu'. */
  readonly activation?: 'relu' | 'gelu' | ((x: Tensor) => Tensor);
  /** Added to the variance by the normalisations. Default 1e-5. */
  readonly layerNormEps?: number;
  /** Whether tensors are [batch, time, width] instead of [time, batch, width]. Default false. */
  readonly batchFirst?: boolean;
  /** Whether to normalise the input of each part instead of its sum with the result. Default false. */
  readonly normFirst?: boolean;
  /** Whether linear layers and normalisations have a bias. Default true. */
  readonly bias?: boolean;
}

const activationCheck: Check = {
  expected: "'relu', 'gelu' or a function",
  fits: (value) => value === 'relu' || value === 'gelu' || typeof value === 'function',
};

export const transformerLayerChecks = {
  dimFeedforward: nonNegativeInteger,
  dropout: attentionDropout,
  activation: activationCheck,
  layerNormEps: nonNegative,
  batchFirst: flag,
  normFirst: flag,
  bias: flag,
};
const transformerLayerOptions = optionChecks<TransformerLayerOptions>(transformerLayerChecks);

/** Masks of an encoder layer; see MultiheadForwardOptions. */
export interface EncoderLayerForwardOptions {
  /** [time, time] or [batch · heads, time, time]: bool, true hiding a key, or floats that are added. Default null. */
  readonly srcMask?: Tensor | null;
  /** [batch, time], or [time] without batch: bool, true hiding a position, or floats that are added. Default null. */
  readonly srcKeyPaddingMask?: Tensor | null;
  /** Says that srcMask, which must be given, hides the keys after each query. Default false. */
  readonly isCausal?: boolean;
}

const encoderForwardOptions = optionChecks<EncoderLayerForwardOptions>({
  srcMask: tensorOrNull,
  srcKeyPaddingMask: tensorOrNull,
  isCausal: flag,
});

/** Masks of a decoder layer; see MultiheadForwardOptions. */
export interface DecoderForwardOptions {
  /**
   * [target, target] or [batch · heads, target, target]: bool, true hiding a key, or floats that are added. Default
   * null.
   */
  readonly tgtMask?: Tensor | null;
  /**
   * [target, source] or [batch · heads, target, source]: bool, true hiding a key, or floats that are added. Default
   * null.
   */
  readonly memoryMask?: Tensor | null;
  /**
   * [batch, target], or [target] without batch: bool, true hiding a position, or floats that are added. Default
   * null.
   */
  readonly tgtKeyPaddingMask?: Tensor | null;
  /**
   * [batch, source], or [source] without batch: bool, true hiding a position, or floats that are added. Default
   * null.
   */
  readonly memoryKeyPaddingMask?: Tensor | null;
  /** Says that tgtMask, which must be given, hides the keys after each query. Default false. */
  readonly tgtIsCausal?: boolean;
  /** Says that memoryMask, which must be given, hides the keys after each query. Default false. */
  readonly memoryIsCausal?: boolean;
}

export const decoderForwardChecks = {
  tgtMask: tensorOrNull,
  memoryMask: tensorOrNull,
  tgtKeyPaddingMask: tensorOrNull,
  memoryKeyPaddingMask: tensorOrNull,
  tgtIsCausal: flag,
  memoryIsCausal: flag,
};
const decoderForwardOptions = optionChecks<DecoderForwardOptions>(decoderForwardChecks);

interface Masks {
  readonly attnMask: Tensor | null;
  readonly keyPaddingMask: Tensor | null;
  readonly isCausal: boolean;
}

/** Checks what the attention of the layers would check, with the names that the program knows. */
export function checkSizes(layer: string, dModel: unknown, nhead: unknown): void {
  checkValue(`${layer}: dModel`, dModel, atLeastOne);
  checkValue(`${layer}: nhead`, nhead, atLeastOne);
  if ((dModel as number) % (nhead as number) !== 0)
    throw badOption(`${layer}: dModel`, `a multiple of nhead ${nhead as number}`, shown(dModel));
}

/** The common part of both layers: self-attention, and two linear layers. */
abstract class TransformerLayer extends Module {
  /** Width of inputs and outputs. */
  readonly dModel: number;
  /** Number of attention heads. */
  readonly nhead: number;
  /** Options, as they were given. */
  readonly options: TransformerLayerOptions;
  /** Attention of the input to itself. */
  readonly selfAttn: MultiheadAttention;
  /** Linear layer to the hidden width. */
  readonly linear1: Linear;
  /** Linear layer back to dModel. */
  readonly linear2: Linear;
  /** Normalisations, one for each part. */
  readonly norms: readonly LayerNorm[];
  /** Dropout after each part. */
  readonly dropout: Dropout;

  constructor(dModel: number, nhead: number, options: TransformerLayerOptions, norms: number) {
    super();
    checkSizes(this.constructor.name, dModel, nhead);
    checkOptions(this.constructor.name, options, transformerLayerOptions);
    const { dimFeedforward = 2048, dropout = 0.1, layerNormEps = 1e-5, bias = true } = options;
    this.dModel = dModel;
    this.nhead = nhead;
    this.options = options;
    this.selfAttn = this.attention();
    this.linear1 = new Linear(dModel, dimFeedforward, { bias });
    this.linear2 = new Linear(dimFeedforward, dModel, { bias });
    this.norms = Array.from({ length: norms }, () => new LayerNorm(dModel, { eps: layerNormEps, bias }));
    this.dropout = new Dropout(dropout);
  }

  protected attention(): MultiheadAttention {
    const { dropout = 0.1, bias = true, batchFirst = false } = this.options;
    return new MultiheadAttention(this.dModel, this.nhead, { dropout, bias, batchFirst });
  }

  protected *commonMembers(): Generator<[string, unknown]> {
    yield ['linear1', this.linear1];
    yield ['linear2', this.linear2];
    for (const [i, norm] of this.norms.entries()) yield [`norm${i + 1}`, norm];
    yield ['dropout', this.dropout];
  }

  protected checkInput(name: string, x: Tensor): void {
    const op = this.constructor.name;
    requireTensor(op, x);
    if ((x.rank !== 2 && x.rank !== 3) || x.shape.at(-1) !== this.dModel)
      throw badTransformerInput(op, name, this.dModel, x.shape);
  }

  /** Adds the result of a part to x, with the normalisation before the part or after the sum. */
  protected residual(x: Tensor, norm: LayerNorm, part: (x: Tensor) => Tensor): Tensor {
    if (this.options.normFirst) return add(x, part(norm.forward(x)));
    return norm.forward(add(x, part(x)));
  }

  protected attend(attention: MultiheadAttention, x: Tensor, memory: Tensor, masks: Masks): Tensor {
    return this.dropout.forward(attention.forward(x, memory, memory, { ...masks, needWeights: false })[0]);
  }

  protected feedForward(x: Tensor): Tensor {
    const { activation = 'relu' } = this.options;
    const hidden =
      typeof activation === 'string'
        ? this.linear1.forward(x, activation)
        : activation(this.linear1.forward(x));
    return this.dropout.forward(this.linear2.forward(this.dropout.forward(hidden)));
  }
}

/** One layer of TransformerEncoder: attention of the input to itself, then two linear layers. */
export class TransformerEncoderLayer extends TransformerLayer {
  constructor(dModel: number, nhead: number, options: TransformerLayerOptions = {}) {
    super(dModel, nhead, options, 2);
  }

  protected override *members(): Iterable<[string, unknown]> {
    yield ['self_attn', this.selfAttn];
    yield* this.commonMembers();
  }

  /** Takes [time, batch, dModel], [batch, time, dModel] with batchFirst, or [time, dModel]. Returns the same shape. */
  forward(src: Tensor, options: EncoderLayerForwardOptions = {}): Tensor {
    checkOptions('TransformerEncoderLayer.forward', options, encoderForwardOptions);
    this.checkInput('src', src);
    const { srcMask = null, srcKeyPaddingMask = null, isCausal = false } = options;
    const masks = { attnMask: srcMask, keyPaddingMask: srcKeyPaddingMask, isCausal };
    const [norm1, norm2] = this.norms as [LayerNorm, LayerNorm];
    return scope(() => {
      const heard = this.residual(src, norm1, (x) => this.attend(this.selfAttn, x, x, masks));
      return this.residual(heard, norm2, (x) => this.feedForward(x));
    });
  }
}

/** One layer of TransformerDecoder: attention to itself, attention to the memory, then two linear layers. */
export class TransformerDecoderLayer extends TransformerLayer {
  /** Attention to the memory. */
  readonly multiheadAttn: MultiheadAttention;

  constructor(dModel: number, nhead: number, options: TransformerLayerOptions = {}) {
    super(dModel, nhead, options, 3);
    this.multiheadAttn = this.attention();
  }

  protected override *members(): Iterable<[string, unknown]> {
    yield ['self_attn', this.selfAttn];
    yield ['multihead_attn', this.multiheadAttn];
    yield* this.commonMembers();
  }

  /** Takes the target and the output of the encoder, in the forms of TransformerEncoderLayer.forward. */
  forward(tgt: Tensor, memory: Tensor, options: DecoderForwardOptions = {}): Tensor {
    checkOptions('TransformerDecoderLayer.forward', options, decoderForwardOptions);
    this.checkInput('tgt', tgt);
    this.checkInput('memory', memory);
    const { tgtMask = null, memoryMask = null, tgtIsCausal = false, memoryIsCausal = false } = options;
    const { tgtKeyPaddingMask = null, memoryKeyPaddingMask = null } = options;
    const own = { attnMask: tgtMask, keyPaddingMask: tgtKeyPaddingMask, isCausal: tgtIsCausal };
    const other = { attnMask: memoryMask, keyPaddingMask: memoryKeyPaddingMask, isCausal: memoryIsCausal };
    const [norm1, norm2, norm3] = this.norms as [LayerNorm, LayerNorm, LayerNorm];
    return scope(() => {
      const heard = this.residual(tgt, norm1, (x) => this.attend(this.selfAttn, x, x, own));
      const crossed = this.residual(heard, norm2, (x) => this.attend(this.multiheadAttn, x, memory, other));
      return this.residual(crossed, norm3, (x) => this.feedForward(x));
    });
  }
}

/** Makes a layer like `layer`, with copies of its parameters. */
export function copyOfLayer<L extends TransformerEncoderLayer | TransformerDecoderLayer>(layer: L): L {
  const Class = layer.constructor as new (
    dModel: number,
    nhead: number,
    options: TransformerLayerOptions,
  ) => L;
  const copy = new Class(layer.dModel, layer.nhead, layer.options);
  const { dtype, device } = layer.linear1.weight;
  copy.to(dtype);
  copy.to(device);
  copy.loadStateDict(layer.stateDict());
  return copy;
}
