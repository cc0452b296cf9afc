// The reduction of losses, of which there is one per element or row.
import { optionChecks } from '../../checks/options.ts';
import { oneOf } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mean, sum } from './reduce.ts';

/** The result of a loss: the mean, the sum, or every loss. */
export type Reduction = 'mean' | 'sum' | 'none';

/** Options of losses. */
export interface LossOptions {
  /** 'mean' (default), 'sum', or 'none', which returns every loss. */
  readonly reduction?: Reduction;
}

export const lossChecks = { reduction: oneOf('mean', 'sum', 'none') };
export const lossOptions = optionChecks<LossOptions>(lossChecks);

export function reduceLosses(losses: Tensor, reduction: Reduction): Tensor {
  if (reduction === 'none') return losses;
  return reduction === 'sum' ? sum(losses) : mean(losses);
}
