// What --program job trains: a network of two layers, on samples that are a function of their index.

import { crossEntropy, fromHost, scope, type Tensor } from '@ringwise/tensor';
import { Linear, type Module, ReLU, Sequential } from '@ringwise/tensor/nn';
import { Adam } from '@ringwise/tensor/optim';
import { microBatchesPerStep, samplesPerStep } from './model.ts';

export { samplesPerStep };
export const microBatch = samplesPerStep / microBatchesPerStep;
const [inputs, classes] = [16, 10];

/** Makes a network with about so many parameters, and its optimizer. */
export function makeNetwork(parameters: number): { readonly net: Sequential; readonly optimizer: Adam } {
  const hidden = Math.max(1, Math.round(parameters / (inputs + classes + 1)));
  const net = new Sequential(new Linear(inputs, hidden), new ReLU(), new Linear(hidden, classes));
  return { net, optimizer: new Adam(net.parameters(), { lr: 0.001 }) };
}

export function datasetOf() {
  return {
    length: 100 * samplesPerStep,
    get: (index: number) => ({
      x: Float32Array.from({ length: inputs }, (_, i) => Math.sin(1 + 3 * index + 1.3 * i)),
      label: (index * 7) % classes,
    }),
  };
}

/** Returns the values of all parameters. */
export function valuesOf(net: Module): Float32Array {
  return Float32Array.from(
    net.parameters().flatMap((each: Tensor) => Array.from(each.dataSync() as Float32Array)),
  );
}

interface Batch {
  readonly x: { readonly data: Float32Array; readonly shape: readonly number[] };
  readonly label: { readonly data: ArrayLike<number> };
}

/** Runs forward and backward on a micro-batch, and returns its loss. */
export function lossOf(model: { readonly forward: (x: Tensor) => Tensor }, { x, label }: Batch): number {
  return scope(() => {
    const labels = fromHost(Int32Array.from(label.data));
    const loss = crossEntropy(model.forward(fromHost(x.data, x.shape)), labels);
    loss.backward();
    return loss.item();
  });
}
