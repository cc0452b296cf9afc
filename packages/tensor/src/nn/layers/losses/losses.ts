// Losses as modules. A weight is a buffer of its module: it is the tensor that the caller passed, and is saved, loaded
// and converted with the module.

import { checkOptions, type OptionChecks, optionChecks } from '../../../checks/options.ts';
import { integer, nonNegative } from '../../../checks/value-checks.ts';
import type { Tensor } from '../../../core/tensor.ts';
import type { ClassLossOptions, CrossEntropyOptions } from '../../../ops/losses/class-options.ts';
import { crossEntropy, crossEntropyOptions } from '../../../ops/losses/cross-entropy.ts';
import { nllLoss, nllLossOptions } from '../../../ops/losses/loss.ts';
import {
  type BCELossOptions,
  type BCEWithLogitsOptions,
  bce,
  bceOptions,
  bceWithLogits,
  bceWithLogitsOptions,
  type HuberLossOptions,
  huberLoss,
  huberLossOptions,
  type KLDivOptions,
  klDiv,
  klDivOptions,
  l1Loss,
  mseLoss,
  type SmoothL1LossOptions,
  smoothL1Loss,
  smoothL1LossOptions,
} from '../../../ops/losses/loss-pairs.ts';
import {
  type CosineEmbeddingOptions,
  cosineEmbeddingLoss,
  cosineEmbeddingOptions,
  cosineSimilarity,
} from '../../../ops/reduce/cosine.ts';
import { type LossOptions, lossOptions } from '../../../ops/reduce/reduction.ts';
import { buffer } from '../../buffer.ts';
import { declareFields } from '../../fields.ts';
import { Module } from '../../module.ts';

abstract class Loss<Options extends object> extends Module {
  /** Options of the loss, as they were given. */
  readonly options: Options;

  /** Checks the options; `checks` has every option of the loss. */
  constructor(options: Options, checks: OptionChecks) {
    super();
    checkOptions(this.constructor.name, options, checks);
    this.options = options;
  }
}

/** A loss with a weight, which is a buffer. */
abstract class WeightedLoss<
  Options extends LossOptions & { readonly weight?: Tensor },
> extends Loss<Options> {
  /** The weight among the options, a buffer of this module; null without. */
  readonly weight: Tensor | null;

  constructor(options: Options, checks: OptionChecks) {
    super(options, checks);
    this.weight = options.weight ? buffer(options.weight) : null;
    declareFields(this, { weight: 'buffer' });
  }
}

/** Layer of crossEntropy(): takes logits [batch, classes] and labels [batch], or probabilities. */
export class CrossEntropyLoss extends WeightedLoss<CrossEntropyOptions> {
  constructor(options: CrossEntropyOptions = {}) {
    super(options, crossEntropyOptions);
  }

  /** Takes logits [batch, classes, …] and labels [batch, …] or probabilities; returns the reduced loss. */
  forward(logits: Tensor, labels: Tensor): Tensor {
    return crossEntropy(logits, labels, this.options);
  }
}

/** Layer of nllLoss(): takes logarithms of probabilities [batch, classes] and labels [batch]. */
export class NLLLoss extends WeightedLoss<ClassLossOptions> {
  constructor(options: ClassLossOptions = {}) {
    super(options, nllLossOptions);
  }

  /** Takes log probabilities [batch, classes, …] and labels [batch, …]; returns the reduced loss. */
  forward(logProbs: Tensor, labels: Tensor): Tensor {
    return nllLoss(logProbs, labels, this.options);
  }
}

/** Layer of bce(): takes probabilities and targets of one shape. */
export class BCELoss extends WeightedLoss<BCELossOptions> {
  constructor(options: BCELossOptions = {}) {
    super(options, bceOptions);
  }

  /** Takes probabilities and targets from 0 to 1, of one shape; returns the reduced loss. */
  forward(probability: Tensor, target: Tensor): Tensor {
    return bce(probability, target, this.options);
  }
}

/** Layer of bceWithLogits(): takes logits and targets of one shape. */
export class BCEWithLogitsLoss extends WeightedLoss<BCEWithLogitsOptions> {
  /** Weight of the positive targets, a buffer of this module; null without. */
  readonly posWeight: Tensor | null;

  constructor(options: BCEWithLogitsOptions = {}) {
    super(options, bceWithLogitsOptions);
    this.posWeight = options.posWeight ? buffer(options.posWeight) : null;
    declareFields(this, { posWeight: 'buffer' });
  }

  /** Names the buffers as PyTorch does. */
  protected override *members(): Iterable<[string, unknown]> {
    yield ['weight', this.weight];
    yield ['pos_weight', this.posWeight];
  }

  /** Takes logits and targets from 0 to 1, of one shape; returns the reduced loss. */
  forward(logits: Tensor, target: Tensor): Tensor {
    return bceWithLogits(logits, target, this.options);
  }
}

/** Layer of mseLoss(). */
export class MSELoss extends Loss<LossOptions> {
  constructor(options: LossOptions = {}) {
    super(options, lossOptions);
  }

  /** Takes two tensors of one shape; returns the reduced loss. */
  forward(prediction: Tensor, target: Tensor): Tensor {
    return mseLoss(prediction, target, this.options);
  }
}

/** Layer of l1Loss(). */
export class L1Loss extends Loss<LossOptions> {
  constructor(options: LossOptions = {}) {
    super(options, lossOptions);
  }

  /** Takes two tensors of one shape; returns the reduced loss. */
  forward(prediction: Tensor, target: Tensor): Tensor {
    return l1Loss(prediction, target, this.options);
  }
}

/** Layer of smoothL1Loss(). */
export class SmoothL1Loss extends Loss<SmoothL1LossOptions> {
  constructor(options: SmoothL1LossOptions = {}) {
    super(options, smoothL1LossOptions);
  }

  /** Takes two tensors of one shape; returns the reduced loss. */
  forward(prediction: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(prediction, target, this.options);
  }
}

/** Layer of huberLoss(). */
export class HuberLoss extends Loss<HuberLossOptions> {
  constructor(options: HuberLossOptions = {}) {
    super(options, huberLossOptions);
  }

  /** Takes two tensors of one shape; returns the reduced loss. */
  forward(prediction: Tensor, target: Tensor): Tensor {
    return huberLoss(prediction, target, this.options);
  }
}

/** Layer of klDiv(). */
export class KLDivLoss extends Loss<KLDivOptions> {
  constructor(options: KLDivOptions = {}) {
    super(options, klDivOptions);
  }

  /** Takes log probabilities and the target distribution, of one shape; returns the reduced loss. */
  forward(logProbs: Tensor, target: Tensor): Tensor {
    return klDiv(logProbs, target, this.options);
  }
}

/** Layer of cosineEmbeddingLoss(). */
export class CosineEmbeddingLoss extends Loss<CosineEmbeddingOptions> {
  constructor(options: CosineEmbeddingOptions = {}) {
    super(options, cosineEmbeddingOptions);
  }

  /** Takes rows [batch, width] and labels [batch] of 1 (alike) or −1; returns the reduced loss. */
  forward(a: Tensor, b: Tensor, labels: Tensor): Tensor {
    return cosineEmbeddingLoss(a, b, labels, this.options);
  }
}

/** Options of CosineSimilarity. */
export interface CosineSimilarityOptions {
  /** Dimension of the vectors. Default 1. */
  readonly dim?: number;
  /** Lower limit of the vector lengths by which it divides. Default 1e-8. */
  readonly eps?: number;
}

const cosineSimilarityOptions = optionChecks<CosineSimilarityOptions>({ dim: integer, eps: nonNegative });

/** Computes cosineSimilarity along `dim`. */
export class CosineSimilarity extends Module {
  /** Options, as they were given. */
  readonly options: CosineSimilarityOptions;

  constructor(options: CosineSimilarityOptions = {}) {
    super();
    checkOptions('CosineSimilarity', options, cosineSimilarityOptions);
    this.options = options;
  }

  /** Returns the cosine between vectors of a and b; `dim` is absent in the result. */
  forward(a: Tensor, b: Tensor): Tensor {
    return cosineSimilarity(a, b, this.options.dim, this.options.eps);
  }
}
