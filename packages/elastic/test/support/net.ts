// A small network of @ringwise/tensor, data for it, and a way to change its parameters by hand.
import { crossEntropy, manualSeed, type Tensor, tensor } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';

const features = 12;
const hidden = 16;
const classes = 4;

/** Makes a network of three layers with parameters. */
export function makeNet(seed = 1): Sequential {
  manualSeed(seed);
  const layers = [new Linear(features, hidden), new ReLU(), new Linear(hidden, hidden), new ReLU()];
  return new Sequential(...layers, new Linear(hidden, classes));
}

/** Makes the network of makeNet() with another layer of `hidden` features, whose weight is that of the layer before. */
export function makeTiedNet(seed = 1): Sequential {
  const net = makeNet(seed);
  const [first, , second, , last] = net.children() as [Linear, ReLU, Linear, ReLU, Linear];
  const tied = new Linear(hidden, hidden);
  tied.weight = second.weight;
  return new Sequential(first, new ReLU(), second, new ReLU(), tied, new ReLU(), last);
}

/** Returns the loss of `count` samples from sample number `from` on. */
export function lossOf(forward: (x: Tensor) => Tensor, from: number, count: number): Tensor {
  const rows = Array.from({ length: count }, (_, i) =>
    Array.from({ length: features }, (_, k) => Math.cos(0.37 * ((from + i) * features + k))),
  );
  const labels = Int32Array.from(rows, (row) => (row[0]! > 0 ? 2 : 0) + (row[4]! > 0 ? 1 : 0));
  return crossEntropy(forward(tensor(rows)), tensor(labels));
}

type Parameters = { readonly parameters: () => readonly Tensor[] };

/** Returns a copy of all parameters, one after the other. */
export function flat(net: Parameters): Float32Array {
  return Float32Array.from(
    net.parameters().flatMap((parameter) => [...(parameter.dataSync() as Float32Array)]),
  );
}

/** Sets every parameter's element to `next(value, index)`, as if inner steps had done it. */
export function setEach(net: Parameters, next: (value: number, index: number) => number): void {
  let index = 0;
  for (const parameter of net.parameters()) {
    const values = parameter.dataSync() as Float32Array;
    for (let k = 0; k < values.length; k++) values[k] = next(values[k]!, index++);
  }
}

export function largestDifference(a: Iterable<number>, b: Iterable<number>): number {
  const other = [...b];
  return [...a].reduce((largest, value, i) => Math.max(largest, Math.abs(value - other[i]!)), 0);
}
