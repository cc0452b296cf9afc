// Layers and functions that are measured forward and backward: each from an input and weights of noise to the sum of
// squares of the result. The check is that sum and the sum of the input's gradient.
import {
  convTranspose2d,
  fromHost,
  groupNorm,
  interpolate,
  keep,
  noGrad,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { LSTM } from '@ringwise/tensor/nn';

export interface Layer {
  readonly kind: 'layer';
  readonly name: LayerName;
  /** The shape of the input. */
  readonly shape: readonly number[];
  /** The shapes of the weights, which are taken from the noise one after the other, times 0.1. */
  readonly weights: readonly (readonly number[])[];
  readonly seconds: number;
}

type Forward = (x: Tensor, weights: readonly Tensor[]) => Tensor;

const rows = 20_000;
/** Indices from 0 to `rows` − 1 in an order without a pattern; each row is taken about twice. */
const places = (): Tensor =>
  fromHost(
    Int32Array.from({ length: 2 * rows }, (_, i) => (i * 7919) % rows),
    [2 * rows],
  );

const makers = {
  lstm: (weights: readonly Tensor[]): Forward => {
    const layer = new LSTM(128, 128);
    noGrad(() => {
      for (const [i, parameter] of layer.parameters().entries()) parameter.copy_(weights[i]!);
    });
    return (x) => layer.forward(x)[0];
  },
  groupNorm:
    (): Forward =>
    (x, [weight, bias]) =>
      groupNorm(x, 8, { weight: weight!, bias: bias! }),
  convTranspose2d:
    (): Forward =>
    (x, [weight, bias]) =>
      convTranspose2d(x, weight!, bias!, { stride: 2, padding: 1 }),
  'rows by index': (): Forward => {
    const index = keep(places());
    return (x) => x.at(index);
  },
  'rows added by index': (): Forward => {
    const index = keep(places());
    return (x, [source]) => x.indexAdd(0, index, source!);
  },
  'bilinear interpolation': (): Forward => (x) => interpolate(x, { scaleFactor: 2, mode: 'bilinear' }),
} satisfies Record<string, (weights: readonly Tensor[]) => Forward>;
export type LayerName = keyof typeof makers;

const layer = (
  name: LayerName,
  shape: readonly number[],
  weights: readonly (readonly number[])[],
  seconds: number,
): Layer => ({ kind: 'layer', name, shape, weights, seconds });

export const layerTasks = (seconds: number): Layer[] => [
  layer('lstm', [32, 32, 128], [[512, 128], [512, 128], [512], [512]], seconds),
  layer('groupNorm', [16, 64, 32, 32], [[64], [64]], seconds),
  layer('convTranspose2d', [8, 64, 16, 16], [[64, 32, 4, 4], [32]], seconds),
  layer('rows by index', [rows, 64], [], seconds),
  layer('rows added by index', [rows, 64], [[2 * rows, 64]], seconds),
  layer('bilinear interpolation', [8, 16, 32, 32], [], seconds),
];

const count = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
const nowUs = (): number => Number(process.hrtime.bigint()) / 1000;

/** Runs a task. Returns the time of each forward and backward, and what is compared with the peers. */
export function runLayer(
  task: Layer,
  left: Float32Array,
  right: Float32Array,
): { times: number[]; check: number[] } {
  return scope(() => {
    const x = fromHost(left.subarray(0, count(task.shape)), task.shape);
    x.requiresGrad = true;
    let at = 0;
    const weights = task.weights.map((shape) => {
      const size = count(shape);
      const weight = fromHost(right.subarray(at, at + size), shape).mul(0.1);
      at += size;
      weight.requiresGrad = true;
      return weight;
    });
    const forward = makers[task.name](weights);
    const times: number[] = [];
    const step = (): number => {
      x.zeroGrad();
      for (const weight of weights) weight.zeroGrad();
      return scope(() => {
        const loss = forward(x, weights).square().sum();
        loss.backward();
        return loss.item();
      });
    };
    step();
    for (const end = nowUs() + task.seconds * 1e6; times.length < 5 || nowUs() < end; ) {
      const start = nowUs();
      step();
      times.push(nowUs() - start);
    }
    return { times, check: [step(), x.grad!.to('float64').sum().item()] };
  });
}
