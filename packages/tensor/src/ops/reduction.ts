// What losses have in common: one loss per element or row, and what is made of them.
import { badReduction } from '../errors.ts';
import type { Tensor } from '../tensor.ts';
import { mean, sum } from './reduce.ts';

export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** 'mean' (default), 'sum', or 'none' for every loss on its own. */
  readonly reduction?: Reduction;
}

export function checkedReduction(op: string, { reduction = 'mean' }: LossOptions): Reduction {
  if (reduction === 'mean' || reduction === 'sum' || reduction === 'none') return reduction;
  throw badReduction(op, reduction);
}

export function reduceLosses(losses: Tensor, reduction: Reduction): Tensor {
  if (reduction === 'none') return losses;
  return reduction === 'sum' ? sum(losses) : mean(losses);
}
