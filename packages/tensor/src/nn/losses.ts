// Losses as modules. Weights are buffers, so that they are saved and converted with the module.
import {
  type BCELossOptions,
  type BCEWithLogitsOptions,
  bce,
  bceWithLogits,
  type ClassLossOptions,
  type CosineEmbeddingOptions,
  type CrossEntropyOptions,
  cosineEmbeddingLoss,
  cosineSimilarity,
  crossEntropy,
  type HuberLossOptions,
  huberLoss,
  type KLDivOptions,
  klDiv,
  type LossOptions,
  l1Loss,
  mseLoss,
  nllLoss,
  type SmoothL1LossOptions,
  smoothL1Loss,
} from '../ops/index.ts';
import type { Tensor } from '../tensor.ts';
import { buffer } from './buffer.ts';
import { Module } from './module.ts';

abstract class Loss<Options extends object> extends Module {
  readonly options: Options;

  constructor(options: Options = {} as Options) {
    super();
    this.options = options;
  }
}

/** A loss with a weight, which is a buffer. */
abstract class WeightedLoss<Options extends { readonly weight?: Tensor }> extends Loss<Options> {
  readonly weight: Tensor | null;

  constructor(options: Options = {} as Options) {
    super(options);
    this.weight = options.weight ? buffer(options.weight) : null;
  }
}

export class CrossEntropyLoss extends WeightedLoss<CrossEntropyOptions> {
  forward(logits: Tensor, labels: Tensor): Tensor {
    return crossEntropy(logits, labels, this.options);
  }
}

export class NLLLoss extends WeightedLoss<ClassLossOptions> {
  forward(logProbs: Tensor, labels: Tensor): Tensor {
    return nllLoss(logProbs, labels, this.options);
  }
}

export class BCELoss extends WeightedLoss<BCELossOptions> {
  forward(probability: Tensor, target: Tensor): Tensor {
    return bce(probability, target, this.options);
  }
}

export class BCEWithLogitsLoss extends WeightedLoss<BCEWithLogitsOptions> {
  readonly posWeight: Tensor | null;

  constructor(options: BCEWithLogitsOptions = {}) {
    super(options);
    this.posWeight = options.posWeight ? buffer(options.posWeight) : null;
  }

  forward(logits: Tensor, target: Tensor): Tensor {
    return bceWithLogits(logits, target, this.options);
  }
}

export class MSELoss extends Loss<LossOptions> {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return mseLoss(prediction, target, this.options);
  }
}

export class L1Loss extends Loss<LossOptions> {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return l1Loss(prediction, target, this.options);
  }
}

export class SmoothL1Loss extends Loss<SmoothL1LossOptions> {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(prediction, target, this.options);
  }
}

export class HuberLoss extends Loss<HuberLossOptions> {
  forward(prediction: Tensor, target: Tensor): Tensor {
    return huberLoss(prediction, target, this.options);
  }
}

export class KLDivLoss extends Loss<KLDivOptions> {
  forward(logProbs: Tensor, target: Tensor): Tensor {
    return klDiv(logProbs, target, this.options);
  }
}

export class CosineEmbeddingLoss extends Loss<CosineEmbeddingOptions> {
  forward(a: Tensor, b: Tensor, labels: Tensor): Tensor {
    return cosineEmbeddingLoss(a, b, labels, this.options);
  }
}

/** cosineSimilarity along `dim` (default 1). */
export class CosineSimilarity extends Loss<{ readonly dim?: number; readonly eps?: number }> {
  forward(a: Tensor, b: Tensor): Tensor {
    return cosineSimilarity(a, b, this.options.dim, this.options.eps);
  }
}
