// What a training benchmark needs to know of a model and its data.
import type { Tensor } from '@ringwise/tensor';
import type { Module } from '@ringwise/tensor/nn';
import type { Optimizer } from '@ringwise/tensor/optim';

/** A model; its parameters and data follow from nothing but the arguments, so that peers can start from the same. */
export interface Job {
  /** A new model, seeded. */
  readonly model: () => Module & { readonly forward: (x: Tensor) => Tensor };
  readonly optimizer: (parameters: Tensor[]) => Optimizer;
  /** Batches of one rank, without end. `forward` is that of the model or of ddp's model. */
  readonly losses: (
    share: { readonly rank: number; readonly ranks: number; readonly batch: number },
    forward: (x: Tensor) => Tensor,
  ) => Iterator<() => Tensor>;
  readonly batch: number;
  /** What `batch` counts, in the unit of `rate`. */
  readonly unitsPerSample: number;
  /** The name of what is trained on in a second. */
  readonly rate: string;
}
