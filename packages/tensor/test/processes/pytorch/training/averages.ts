// The averages of weights of training.py's AVERAGES, by the same names and in the same order.
import { noGrad, type Tensor } from '../../../../src/index.ts';
import { BatchNorm1d } from '../../../../src/nn/index.ts';
import {
  AveragedModel,
  type AveragedModelOptions,
  getEmaAvgFn,
  getEmaMultiAvgFn,
  getSwaAvgFn,
  getSwaMultiAvgFn,
  updateBn,
} from '../../../../src/optim/index.ts';
import { wave } from './wave.ts';

export const averages: Readonly<Record<string, AveragedModelOptions>> = {
  SWA: {},
  'SWA with buffers': { useBuffers: true },
  EMA: { multiAvgFn: getEmaMultiAvgFn(0.8) },
  'EMA of one': { avgFn: getEmaAvgFn(0.3) },
  'SWA of one': { avgFn: getSwaAvgFn() },
  'SWA of all': { multiAvgFn: getSwaMultiAvgFn() },
};

const numbers = (tensors: readonly Tensor[]): number[] =>
  tensors.flatMap((tensor) => Array.from(tensor.dataSync() as ArrayLike<number | bigint>, Number));

/** Returns parameters and buffers of the average of four models, then the statistics that updateBn() computes. */
export async function averageOf(options: AveragedModelOptions): Promise<number[]> {
  const model = new BatchNorm1d(3);
  const averaged = new AveragedModel(model, new BatchNorm1d(3), options);
  for (let n = 0; n < 4; n++) {
    noGrad(() => {
      model.weight!.copy_(wave([3], n));
      model.bias!.copy_(wave([3], n + 4));
      model.forward(wave([4, 3], n));
    });
    averaged.updateParameters(model);
  }
  const { n_averaged: count, ...rest } = averaged.stateDict();
  const seen = numbers([count!, ...Object.values(rest)]);
  await updateBn(
    [0, 1, 2].map((n): [Tensor] => [wave([5, 3], n).detach()]),
    averaged,
  );
  const { n_averaged: _, ...buffers } = Object.fromEntries(averaged.namedBuffers());
  return [...seen, ...numbers([count!, ...Object.values(buffers)])];
}
