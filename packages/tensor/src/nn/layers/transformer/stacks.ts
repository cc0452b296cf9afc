// PyTorch's TransformerEncoder, TransformerDecoder and Transformer.
import { checkOptions, optionChecks } from '../../../checks/options.ts';
import { notALayer } from '../../../checks/sequence-errors.ts';
import {
  anything,
  atLeastOne,
  type Check,
  checkValue,
  flag,
  tensorOrNull,
} from '../../../checks/value-checks.ts';
import { scope } from '../../../core/context.ts';
import { full } from '../../../core/creation.ts';
import type { CreationOptions } from '../../../core/op-options.ts';
import type { Tensor } from '../../../core/tensor.ts';
import { shown } from '../../../errors.ts';
import { triu } from '../../../ops/index.ts';
import { xavierUniform_ } from '../../initializers.ts';
import { Module } from '../../module.ts';
import { LayerNorm } from '../norm.ts';
import {
  checkSizes,
  copyOfLayer,
  type DecoderForwardOptions,
  decoderForwardChecks,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
  transformerLayerChecks,
} from './layers.ts';

/** A module that maps a tensor to one of the same shape. */
interface NormModule extends Module {
  forward(x: Tensor): Tensor;
}

const aModule: Check = {
  expected: 'a module or null',
  fits: (value) => value === null || value instanceof Module,
};

/** Options of TransformerEncoder and TransformerDecoder. */
export interface TransformerStackOptions {
  /** Applied to the result of the last layer. Default null. */
  readonly norm?: NormModule | null;
}

const stackOptions = optionChecks<TransformerStackOptions>({ norm: aModule });

/** Masks of TransformerEncoder.forward(); see MultiheadForwardOptions. */
export interface EncoderForwardOptions {
  /** [time, time] or [batch · heads, time, time]: bool, true hiding a key, or floats that are added. Default null. */
  readonly mask?: Tensor | null;
  /** [batch, time], or [time] without batch: bool, true hiding a position, or floats that are added. Default null. */
  readonly srcKeyPaddingMask?: Tensor | null;
  /** Says that mask, which must be given, hides the keys after each query. Default false. */
  readonly isCausal?: boolean;
}

const encoderForwardOptions = optionChecks<EncoderForwardOptions>({
  mask: tensorOrNull,
  srcKeyPaddingMask: tensorOrNull,
  isCausal: flag,
});
const decoderForwardOptions = optionChecks<DecoderForwardOptions>(decoderForwardChecks);

/** Layers of an encoder, one after another. Every layer starts as a copy of the given one. */
export class TransformerEncoder extends Module {
  /** The layers, first to last. */
  readonly layers: readonly TransformerEncoderLayer[];
  /** Normalisation of the result; null without. */
  readonly norm: NormModule | null;

  constructor(layer: TransformerEncoderLayer, numLayers: number, options: TransformerStackOptions = {}) {
    super();
    if (!(layer instanceof TransformerEncoderLayer))
      throw notALayer('TransformerEncoder', 'TransformerEncoderLayer', shown(layer));
    checkValue('TransformerEncoder: numLayers', numLayers, atLeastOne);
    checkOptions('TransformerEncoder', options, stackOptions);
    this.layers = Array.from({ length: numLayers }, () => copyOfLayer(layer));
    this.norm = options.norm ?? null;
  }

  /** Takes [time, batch, dModel], or the batch first as its layers do; returns the same shape. */
  forward(src: Tensor, options: EncoderForwardOptions = {}): Tensor {
    checkOptions('TransformerEncoder.forward', options, encoderForwardOptions);
    const { mask = null, srcKeyPaddingMask = null, isCausal = false } = options;
    return scope(() => {
      let x = src;
      for (const layer of this.layers) x = layer.forward(x, { srcMask: mask, srcKeyPaddingMask, isCausal });
      return this.norm ? this.norm.forward(x) : x;
    });
  }
}

/** Layers of a decoder, one after another. Every layer starts as a copy of the given one. */
export class TransformerDecoder extends Module {
  /** The layers, first to last. */
  readonly layers: readonly TransformerDecoderLayer[];
  /** Normalisation of the result; null without. */
  readonly norm: NormModule | null;

  constructor(layer: TransformerDecoderLayer, numLayers: number, options: TransformerStackOptions = {}) {
    super();
    if (!(layer instanceof TransformerDecoderLayer))
      throw notALayer('TransformerDecoder', 'TransformerDecoderLayer', shown(layer));
    checkValue('TransformerDecoder: numLayers', numLayers, atLeastOne);
    checkOptions('TransformerDecoder', options, stackOptions);
    this.layers = Array.from({ length: numLayers }, () => copyOfLayer(layer));
    this.norm = options.norm ?? null;
  }

  /** Takes the target and the output of the encoder; returns the shape of the target. */
  forward(tgt: Tensor, memory: Tensor, options: DecoderForwardOptions = {}): Tensor {
    checkOptions('TransformerDecoder.forward', options, decoderForwardOptions);
    return scope(() => {
      let x = tgt;
      for (const layer of this.layers) x = layer.forward(x, memory, options);
      return this.norm ? this.norm.forward(x) : x;
    });
  }
}

/** Options of Transformer. */
export interface TransformerOptions extends TransformerLayerOptions {
  /** Default 6. */
  readonly numEncoderLayers?: number;
  /** Default 6. */
  readonly numDecoderLayers?: number;
}

const transformerOptions = optionChecks<TransformerOptions>({
  ...transformerLayerChecks,
  numEncoderLayers: atLeastOne,
  numDecoderLayers: atLeastOne,
});

/** Masks of Transformer.forward(); see MultiheadForwardOptions. */
export interface TransformerForwardOptions extends DecoderForwardOptions {
  /**
   * [source, source] or [batch · heads, source, source]: bool, true hiding a key, or floats that are added. Default
   * null.
   */
  readonly srcMask?: Tensor | null;
  /**
   * [batch, source], or [source] without batch: bool, true hiding a position, or floats that are added. Default
   * null.
   */
  readonly srcKeyPaddingMask?: Tensor | null;
  /** Says that srcMask, which must be given, hides the keys after each query. Default false. */
  readonly srcIsCausal?: boolean;
}

const transformerForwardOptions = optionChecks<TransformerForwardOptions>({
  ...decoderForwardChecks,
  srcMask: tensorOrNull,
  srcKeyPaddingMask: tensorOrNull,
  srcIsCausal: flag,
});

/** An encoder and a decoder, each with a normalisation at its end. Matrices start Xavier uniform. */
export class Transformer extends Module {
  /** Reads the source. */
  readonly encoder: TransformerEncoder;
  /** Reads the target and the output of the encoder. */
  readonly decoder: TransformerDecoder;

  constructor(dModel = 512, nhead = 8, options: TransformerOptions = {}) {
    super();
    checkSizes('Transformer', dModel, nhead);
    checkOptions('Transformer', options, transformerOptions);
    const { numEncoderLayers = 6, numDecoderLayers = 6, ...rest } = options;
    const { layerNormEps: eps = 1e-5, bias = true } = options;
    const norm = (): LayerNorm => new LayerNorm(dModel, { eps, bias });
    const encoderLayer = new TransformerEncoderLayer(dModel, nhead, rest);
    const decoderLayer = new TransformerDecoderLayer(dModel, nhead, rest);
    this.encoder = new TransformerEncoder(encoderLayer, numEncoderLayers, { norm: norm() });
    this.decoder = new TransformerDecoder(decoderLayer, numDecoderLayers, { norm: norm() });
    for (const layer of [encoderLayer, decoderLayer])
      for (const parameter of layer.parameters()) parameter.dispose();
    for (const parameter of this.parameters()) if (parameter.rank > 1) xavierUniform_(parameter);
  }

  /** Returns the output of the decoder for a source and a target [time, batch, dModel], or with batch first. */
  forward(src: Tensor, tgt: Tensor, options: TransformerForwardOptions = {}): Tensor {
    checkOptions('Transformer.forward', options, transformerForwardOptions);
    const { srcMask = null, srcKeyPaddingMask = null, srcIsCausal = false, ...rest } = options;
    return scope(() => {
      const memory = this.encoder.forward(src, { mask: srcMask, srcKeyPaddingMask, isCausal: srcIsCausal });
      return this.decoder.forward(tgt, memory, rest);
    });
  }

  /** Returns a mask [size, size] for attnMask: −∞ above the diagonal, 0 elsewhere. */
  static generateSquareSubsequentMask(
    size: number,
    options: Pick<CreationOptions, 'dtype' | 'device'> = {},
  ): Tensor {
    checkValue('generateSquareSubsequentMask: size', size, atLeastOne);
    checkOptions('generateSquareSubsequentMask', options, maskOptions);
    return scope(() => triu(full([size, size], -Infinity, options), 1));
  }
}
const maskOptions = optionChecks<Pick<CreationOptions, 'dtype' | 'device'>>({
  dtype: anything,
  device: anything,
});
