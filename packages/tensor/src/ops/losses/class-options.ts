// Options of the classification losses: nllLoss and crossEntropy.
import { integer, tensorOrNull } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type LossOptions, lossChecks } from '../reduce/reduction.ts';

/** Options of losses over classes. */
export interface ClassLossOptions extends LossOptions {
  /**
   * One weight for each class, of shape [classes]; the loss of an element is multiplied by the weight of its label.
   * With reduction 'mean', the sum of the losses is divided by the sum of these weights. By default all weights are 1.
   */
  readonly weight?: Tensor;
  /** Elements with this label have loss and gradient 0, and 'mean' does not count them. Default −100. */
  readonly ignoreIndex?: number;
}

/** Options of crossEntropy(). */
export interface CrossEntropyOptions extends ClassLossOptions {
  /** The fraction of each label's probability that is spread evenly over all classes, 0 to 1. Default 0. */
  readonly labelSmoothing?: number;
}

/** Checks the options that both losses have. */
export const classLossChecks = { ...lossChecks, weight: tensorOrNull, ignoreIndex: integer };
