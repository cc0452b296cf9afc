// Options of the losses of classes.
import { integer, tensorOrNull } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type LossOptions, lossChecks } from '../reduce/reduction.ts';

export interface ClassLossOptions extends LossOptions {
  /**
   * Weights of the classes [classes]. With 'mean', the sum of losses is divided by the sum of the weights of the
   * labels. Default 1.
   */
  readonly weight?: Tensor;
  /** Rows with this label are left out. Default −100. */
  readonly ignoreIndex?: number;
}

export interface CrossEntropyOptions extends ClassLossOptions {
  /** The share of each label that is spread evenly over all classes. Default 0. */
  readonly labelSmoothing?: number;
}

export const classLossChecks = { ...lossChecks, weight: tensorOrNull, ignoreIndex: integer };
