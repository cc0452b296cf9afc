// The interface between a training benchmark and the model and data that it trains.
import type { Tensor } from '@ringwise/tensor';
import type { Module } from '@ringwise/tensor/nn';
import type { Optimizer } from '@ringwise/tensor/optim';

/**
 * A model and its data. Both are deterministic, so that all compared programs (ours with and without DDP, and PyTorch)
 * train on equal data from equal initial parameters.
 */
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
  /** Default batch size of one rank. */
  readonly batch: number;
  /** What one sample adds to the count of the rate: 1 for images, the tokens of a window for text. */
  readonly unitsPerSample: number;
  /** The name of the rate: samplesPerSecond or tokensPerSecond. */
  readonly rateName: string;
}
