// Computes the running statistics of batch norms anew, which averages of weights do not have.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { type Check, checkValue } from '../../checks/value-checks.ts';
import { noGrad, scope } from '../../core/context.ts';
import { Tensor } from '../../core/tensor.ts';
import { type DeviceName, deviceOf } from '../../device/device.ts';
import { badOption, shown } from '../../errors.ts';
import { BatchNorm } from '../../nn/layers/batch-norm.ts';
import { Module } from '../../nn/module.ts';

/** Options of updateBn(). */
export interface UpdateBnOptions {
  /** Device to which the inputs are moved before the forward. Default: they stay on theirs. */
  readonly device?: DeviceName;
}

const updateBnOptions = optionChecks<UpdateBnOptions>({
  device: { expected: 'the name of a device', fits: (value) => typeof value === 'string' },
});

/** A batch: the input, or a list that begins with it. */
export type BnBatch = Tensor | readonly [Tensor, ...unknown[]];

const aLoader: Check = {
  expected: 'a list or a stream of batches',
  fits: (value) =>
    typeof value === 'object' &&
    value !== null &&
    !(value instanceof Tensor) &&
    (Symbol.iterator in value || Symbol.asyncIterator in value),
};

/** Returns the input of a batch, or throws. */
function inputOf(batch: BnBatch): Tensor {
  const input: unknown = batch instanceof Tensor ? batch : Array.isArray(batch) ? batch[0] : batch;
  if (input instanceof Tensor) return input;
  throw badOption('updateBn: batch', 'a tensor, or a list that begins with one', shown(batch));
}

/**
 * Runs the model over all batches of `loader`, a list or a stream of batches, and sets the running mean and variance of
 * each batch norm to the mean over all batches. Calls forward() with the batch, or with its first item if it is a list.
 * Does nothing if there are no batch norms with running statistics.
 */
export async function updateBn(
  loader: Iterable<BnBatch> | AsyncIterable<BnBatch>,
  model: Module & { forward(input: Tensor): unknown },
  options: UpdateBnOptions = {},
): Promise<void> {
  checkOptions('updateBn', options, updateBnOptions);
  checkValue('updateBn: loader', loader, aLoader);
  checkValue('updateBn: model', model, {
    expected: 'a module with a forward',
    fits: (value) => value instanceof Module && 'forward' in value,
  });
  const device = options.device === undefined ? null : deviceOf(options.device, 'updateBn');
  const norms = model.modules().filter((module) => module instanceof BatchNorm);
  if (norms.length === 0) return;
  const before = norms.map(({ momentum }) => momentum);
  const wasTraining = model.training;
  for (const norm of norms) {
    norm.runningMean?.zero_();
    norm.runningVar?.fill_(1);
    norm.numBatchesTracked?.zero_();
    setMomentum(norm, null);
  }
  model.train();
  try {
    for await (const batch of loader) {
      const input = inputOf(batch);
      noGrad(() =>
        scope(() => {
          model.forward(device === null ? input : input.to(device));
        }),
      );
    }
  } finally {
    for (const [i, norm] of norms.entries()) setMomentum(norm, before[i]!);
    model.train(wasTraining);
  }
}

/** Sets the momentum of a layer, which only this file changes. null makes the statistics means over all batches. */
function setMomentum(norm: BatchNorm, momentum: number | null): void {
  (norm as { momentum: number | null }).momentum = momentum;
}
