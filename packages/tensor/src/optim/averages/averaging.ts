// Averaging functions for weights: exponential moving averages (EMA) and the equal weights of stochastic weight
// averaging (SWA). Names and numbers are those of torch.optim.swa_utils.
import { checkValue, share } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { isFloat } from '../../core/dtype.ts';
import type { Tensor } from '../../core/tensor.ts';
import { lerp_ } from '../composed/composed-optimizer.ts';

/** Returns the new average of one tensor. `numAveraged` counts the models in the average so far; it is at least 1. */
export type AvgFn = (averaged: Tensor, current: Tensor, numAveraged: number) => Tensor;

/** Writes the new averages into `averaged`, tensors of one dtype on one device. */
export type MultiAvgFn = (
  averaged: readonly Tensor[],
  current: readonly Tensor[],
  numAveraged: number,
) => void;

/** Moves every average towards the current value by the share `weight`. Averages of integers drop their fraction. */
function approach(averaged: readonly Tensor[], current: readonly Tensor[], weight: number): void {
  noGrad(() => {
    for (const [i, average] of averaged.entries())
      scope(() => {
        const value = current[i]!;
        if (isFloat(average.dtype)) lerp_(average, value, weight);
        else average.copy_(average.mul(1 - weight).add(value.mul(weight)));
      });
  });
}

/** Returns the function of an exponential moving average: each update keeps the share `decay` of the average. */
export function getEmaMultiAvgFn(decay = 0.999): MultiAvgFn {
  checkValue('getEmaMultiAvgFn: decay', decay, share);
  return (averaged, current) => approach(averaged, current, 1 - decay);
}

/** Returns the function of an average in which all models have the same weight. */
export function getSwaMultiAvgFn(): MultiAvgFn {
  return (averaged, current, numAveraged) => approach(averaged, current, 1 / (numAveraged + 1));
}

/** Returns the function of an exponential moving average of one tensor: it keeps the share `decay` of the average. */
export function getEmaAvgFn(decay = 0.999): AvgFn {
  checkValue('getEmaAvgFn: decay', decay, share);
  return (averaged, current) => averaged.mul(decay).add(current.mul(1 - decay));
}

/** Returns the function of an average of one tensor in which all models have the same weight. */
export function getSwaAvgFn(): AvgFn {
  return (averaged, current, numAveraged) => averaged.add(current.sub(averaged).div(numAveraged + 1));
}
