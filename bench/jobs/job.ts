// The interface between a training benchmark and the model and data that it trains.
import type { Tensor } from '@ringwise/tensor';
import type { Module } from '@ringwise/tensor/nn';
import type { Optimizer } from '@ringwise/tensor/optim';

/** A model and its data. Both depend on the arguments alone, so that all contenders train on the same numbers. */
export interface Job {
  /** Makes a new model with the same initial parameters each time. */
  readonly model: () => Module & { readonly forward: (x: Tensor) => Tensor };
  readonly optimizer: (parameters: Tensor[]) => Optimizer;
  /**
   * Yields, without end, functions that compute the loss of one rank's next batch by `forward`, the model's
   * or DDP's.
   */
  readonly losses: (
    share: { readonly rank: number; readonly ranks: number; readonly batch: number },
    forward: (x: Tensor) => Tensor,
  ) => Iterator<() => Tensor>;
  readonly batch: number;
  /** How many units of `rate` one sample of the batch has: 1 for images, tokens per window for text. */
  readonly unitsPerSample: number;
  /** The name of the rate: samplesPerSecond or tokensPerSecond. */
  readonly rate: string;
}
