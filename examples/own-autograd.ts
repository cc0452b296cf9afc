// Makes a small autograd of some 50 lines, which knows nothing of ringwise, data-parallel with ddp().
//
//   npx ringwise run --nproc-per-node 2 examples/own-autograd.ts
//
// Claim: all ranks end with the same bits, and with the parameters of one process that trains on the joined batches.
import { type Group, init, loopbackGroups } from '@ringwise/collectives';
import { assertInSync, ddp, type GradParam } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {});

/** Holds a vector, its gradient, the vectors that it was computed from, and a function that passes the gradient on. */
class Value {
  readonly grad: Float32Array;
  readonly onFinal = new Set<() => void>();
  readonly data: Float32Array;
  readonly inputs: readonly Value[];
  readonly passOn: (grad: Float32Array) => void;

  constructor(data: Float32Array, inputs: readonly Value[] = [], passOn = (_: Float32Array) => {}) {
    this.data = data;
    this.grad = new Float32Array(data.length);
    this.inputs = inputs;
    this.passOn = passOn;
  }

  /**
   * Adds gradients to all values that this one depends on, from the last computed to the first. Calls the functions in
   * `onFinal` of each value when its gradient is final.
   */
  backward(): void {
    const order: Value[] = [];
    const visit = (value: Value) => {
      if (order.includes(value)) return;
      for (const input of value.inputs) visit(input);
      order.push(value);
    };
    visit(this);
    this.grad.fill(1);
    for (const value of order.reverse()) {
      value.passOn(value.grad);
      for (const tell of value.onFinal) tell();
    }
  }
}

/** Returns tanh(w₀ + w₁ · x) for each x. */
function neuron(w: Value, x: Value): Value {
  const out = x.data.map((xi) => Math.tanh(w.data[0]! + w.data[1]! * xi));
  return new Value(out, [w, x], (grad) => {
    for (const [i, g] of grad.entries()) {
      const slope = g * (1 - out[i]! ** 2);
      w.grad[0]! += slope;
      w.grad[1]! += slope * x.data[i]!;
      x.grad[i]! += slope * w.data[1]!;
    }
  });
}

/** Returns the mean of (out − y)². */
function meanSquare(out: Value, y: Float32Array): Value {
  const errors = out.data.map((value, i) => value - y[i]!);
  const mean = errors.reduce((sum, error) => sum + error * error, 0) / y.length;
  return new Value(Float32Array.of(mean), [out], ([g]) => {
    for (const [i, error] of errors.entries()) out.grad[i]! += (2 * g! * error) / y.length;
  });
}

/** Describes a parameter to ddp(): its name, its memory, and how to learn that its gradient is final. */
function gradParam(name: string, { data, grad, onFinal }: Value): GradParam {
  const view = (host: Float32Array) =>
    ({
      dtype: 'float32',
      count: host.length,
      device: { kind: 'cpu', index: 0 },
      host,
      handle: null,
    }) as const;
  const onGradReady = (ready: () => void) => {
    onFinal.add(ready);
    return () => void onFinal.delete(ready);
  };
  return { name, value: view(data), grad: view(grad), onGradReady };
}

const batch = 24; // samples per step, of all ranks together

async function train(group: Group, seed: number): Promise<Float32Array[]> {
  const weights = [0, 1, 2].map((i) => new Value(Float32Array.of(Math.sin(seed + i), Math.cos(seed + i))));
  const params = weights.map((weight, i) => gradParam(`w${i}`, weight));
  const model = await ddp(params, { group });
  const share = batch / group.size;
  for (let step = 0; step < 50; step++) {
    for (const { grad } of weights) grad.fill(0);
    const x = Float32Array.from({ length: share }, (_, i) => Math.sin(step + group.rank * share + i));
    const out = weights.reduce((value, weight) => neuron(weight, value), new Value(x));
    const loss = meanSquare(
      out,
      x.map((xi) => xi / 2),
    );
    loss.backward();
    await model.finish();
    reportMetrics({ loss: loss.data[0]!, samples: share });
    for (const { data, grad } of weights) for (const i of data.keys()) data[i]! -= 0.3 * grad[i]!;
  }
  await assertInSync(params, group);
  return weights.map(({ data }) => data);
}

await using group = await init();
const together = await train(group, group.rank); // ranks start with different weights; ddp() gives all rank 0's weights
const alone = await train(loopbackGroups(1)[0]!, 0);
const difference = Math.max(...together.flatMap((w, i) => [...w].map((v, k) => Math.abs(v - alone[i]![k]!))));
if (group.rank === 0)
  console.log(`${group.size} ranks: off by ${difference < 1e-5 ? 'less than 1e-5' : difference}`);
if (!(difference < 1e-5)) throw new Error(`off by ${difference}`);
