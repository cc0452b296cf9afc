// A small network of @ringwise/tensor, and data for it.
import { crossEntropy, manualSeed, type Tensor, tensor } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';

const features = 20;
const hidden = 32;
const classes = 4;

export function makeNet(seed: number): Sequential {
  manualSeed(seed);
  const layers = [new Linear(features, hidden), new ReLU(), new Linear(hidden, hidden), new ReLU()];
  return new Sequential(...layers, new Linear(hidden, classes));
}

/** Returns the loss of samples `from` to `from + count`. */
export function lossOf(forward: (x: Tensor) => Tensor, from: number, count: number): Tensor {
  const rows = Array.from({ length: count }, (_, i) =>
    Array.from({ length: features }, (_, k) => Math.cos(0.37 * ((from + i) * features + k))),
  );
  const labels = Int32Array.from(rows, (_, i) => (from + i) % classes);
  return crossEntropy(forward(tensor(rows)), tensor(labels));
}

/** Returns a copy of all parameters. */
export function flat(net: Sequential): Float32Array {
  return Float32Array.from(
    net.parameters().flatMap((parameter) => [...(parameter.dataSync() as Float32Array)]),
  );
}
