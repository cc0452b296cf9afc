// Losses with margins and likelihoods as modules, and PairwiseDistance.
import { checkOptions, type OptionChecks } from '../../../checks/options.ts';
import type { Tensor } from '../../../core/tensor.ts';
import {
  type GaussianNllOptions,
  gaussianNllLoss,
  gaussianNllOptions,
  type PoissonNllOptions,
  poissonNllLoss,
  poissonNllOptions,
} from '../../../ops/losses/likelihoods.ts';
import {
  hingeEmbeddingLoss,
  type MarginOptions,
  marginOptions,
  marginRankingLoss,
  type PairwiseDistanceOptions,
  pairwiseDistance,
  pairwiseDistanceOptions,
  type TripletMarginOptions,
  type TripletMarginWithDistanceOptions,
  tripletMarginLoss,
  tripletMarginOptions,
  tripletMarginWithDistanceLoss,
  tripletMarginWithDistanceOptions,
} from '../../../ops/losses/margins.ts';
import {
  type MultilabelSoftMarginOptions,
  type MultiMarginOptions,
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multilabelSoftMarginOptions,
  multiMarginLoss,
  multiMarginOptions,
  softMarginLoss,
} from '../../../ops/losses/multi-class.ts';
import { type LossOptions, lossOptions } from '../../../ops/reduce/reduction.ts';
import { buffer } from '../../buffer.ts';
import { declareFields } from '../../fields.ts';
import { Module } from '../../module.ts';

abstract class Optioned<Options extends object> extends Module {
  /** Options of the loss, as they were given. */
  readonly options: Options;
  /** The weight among the options, if there is one: a buffer, so that it is saved and moved with the module. */
  readonly weight: Tensor | null;

  constructor(options: Options, checks: OptionChecks) {
    super();
    checkOptions(this.constructor.name, options, checks);
    const { weight = null } = options as { readonly weight?: Tensor | null };
    this.options = options;
    this.weight = weight && buffer(weight);
    declareFields(this, { weight: 'buffer' });
  }
}

/** Layer of marginRankingLoss(). */
export class MarginRankingLoss extends Optioned<MarginOptions> {
  constructor(options: MarginOptions = {}) {
    super(options, marginOptions);
  }

  /** Takes a and b, and a target of 1 where a should be larger, −1 where b should; returns the reduced loss. */
  forward(a: Tensor, b: Tensor, target: Tensor): Tensor {
    return marginRankingLoss(a, b, target, this.options);
  }
}

/** Layer of hingeEmbeddingLoss(). */
export class HingeEmbeddingLoss extends Optioned<MarginOptions> {
  constructor(options: MarginOptions = {}) {
    super(options, marginOptions);
  }

  /** Takes distances, and targets of 1 (alike) or −1; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    return hingeEmbeddingLoss(input, target, this.options);
  }
}

/** Layer of softMarginLoss(). */
export class SoftMarginLoss extends Optioned<LossOptions> {
  constructor(options: LossOptions = {}) {
    super(options, lossOptions);
  }

  /** Takes scores, and targets of 1 or −1; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    return softMarginLoss(input, target, this.options);
  }
}

/** Layer of multiMarginLoss(). */
export class MultiMarginLoss extends Optioned<MultiMarginOptions> {
  constructor(options: MultiMarginOptions = {}) {
    super(options, multiMarginOptions);
  }

  /** Takes scores [batch, classes] and labels [batch]; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    return multiMarginLoss(input, target, this.options);
  }
}

/** Layer of multilabelMarginLoss(). */
export class MultiLabelMarginLoss extends Optioned<LossOptions> {
  constructor(options: LossOptions = {}) {
    super(options, lossOptions);
  }

  /** Takes scores [batch, classes] and labels of the same shape, ended by −1; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    return multilabelMarginLoss(input, target, this.options);
  }
}

/** Layer of multilabelSoftMarginLoss(). */
export class MultiLabelSoftMarginLoss extends Optioned<MultilabelSoftMarginOptions> {
  constructor(options: MultilabelSoftMarginOptions = {}) {
    super(options, multilabelSoftMarginOptions);
  }

  /** Takes scores and targets of 0 or 1, both [batch, classes]; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    return multilabelSoftMarginLoss(input, target, this.options);
  }
}

/** Layer of tripletMarginLoss(). */
export class TripletMarginLoss extends Optioned<TripletMarginOptions> {
  constructor(options: TripletMarginOptions = {}) {
    super(options, tripletMarginOptions);
  }

  /** Takes anchors, examples that should be near and others that should be far; returns the reduced loss. */
  forward(anchor: Tensor, near: Tensor, far: Tensor): Tensor {
    return tripletMarginLoss(anchor, near, far, this.options);
  }
}

/** Layer of tripletMarginWithDistanceLoss(). */
export class TripletMarginWithDistanceLoss extends Optioned<TripletMarginWithDistanceOptions> {
  constructor(options: TripletMarginWithDistanceOptions = {}) {
    super(options, tripletMarginWithDistanceOptions);
  }

  /** Takes anchors, examples that should be near and others that should be far; returns the reduced loss. */
  forward(anchor: Tensor, near: Tensor, far: Tensor): Tensor {
    return tripletMarginWithDistanceLoss(anchor, near, far, this.options);
  }
}

/** Layer of gaussianNllLoss(). */
export class GaussianNLLLoss extends Optioned<GaussianNllOptions> {
  constructor(options: GaussianNllOptions = {}) {
    super(options, gaussianNllOptions);
  }

  /** Takes means, targets and variances ≥ 0; returns the reduced loss. */
  forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    return gaussianNllLoss(input, target, variance, this.options);
  }
}

/** Layer of poissonNllLoss(). */
export class PoissonNLLLoss extends Optioned<PoissonNllOptions> {
  constructor(options: PoissonNllOptions = {}) {
    super(options, poissonNllOptions);
  }

  /** Takes logarithms of rates (rates with logInput: false) and counts; returns the reduced loss. */
  forward(input: Tensor, target: Tensor): Tensor {
    return poissonNllLoss(input, target, this.options);
  }
}

/** Layer of pairwiseDistance(). */
export class PairwiseDistance extends Optioned<PairwiseDistanceOptions> {
  constructor(options: PairwiseDistanceOptions = {}) {
    super(options, pairwiseDistanceOptions);
  }

  /** Takes [..., width] twice; returns the distances [...]. */
  forward(a: Tensor, b: Tensor): Tensor {
    return pairwiseDistance(a, b, this.options);
  }
}
