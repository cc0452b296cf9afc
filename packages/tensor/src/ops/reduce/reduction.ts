// What losses have in common: one loss per element or row, and what is made of them.
import { optionChecks } from '../../checks/options.ts';
import { oneOf } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { mean, sum } from './reduce.ts';

export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** 'mean' (default), 'sum', or 'none' for every loss on its own. */
  readonly reduction?: Reduction;
}

export const lossChecks = { reduction: oneOf('mean', 'sum', 'none') };
export const lossOptions = optionChecks<LossOptions>(lossChecks);

export function reduceLosses(losses: Tensor, reduction: Reduction): Tensor {
  if (reduction === 'none') return losses;
  return reduction === 'sum' ? sum(losses) : mean(losses);
}
