// Training steps and matrix products that are measured on one thread: those of tensor-peers.ts and builds.ts.
import { crossEntropy, fromHost, generator, manualSeed, matmul, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { median } from '../median.ts';
import { type Layer, layerTasks, runLayer } from './layers.ts';

export interface Mlp {
  readonly kind: 'mlp';
  readonly name: string;
  readonly batch: number;
  readonly batches: number;
  readonly sizes: readonly number[];
  readonly lr: number;
  readonly momentum: number;
  readonly warmup: number;
  readonly steps: number;
}
export interface Matmul {
  readonly kind: 'matmul';
  readonly name: string;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly transA: boolean;
  readonly transB: boolean;
  readonly calls: number;
  readonly seconds: number;
}
export interface Result {
  readonly us: number;
  readonly check: readonly number[];
}

export type Task = Mlp | Matmul | Layer;

const mlp = (batch: number, steps: number): Mlp => ({
  kind: 'mlp',
  name: `mlp batch ${batch}`,
  batch,
  batches: 8,
  sizes: [784, 512, 512, 10],
  lr: 0.01,
  momentum: 0.9,
  warmup: 20,
  steps,
});
const product =
  (seconds: number) =>
  (name: string, m: number, n: number, k: number, transA = false, transB = false): Matmul => ({
    kind: 'matmul',
    name: `${name} ${m}×${n}×${k}`,
    m,
    n,
    k,
    transA,
    transB,
    calls: Math.max(1, Math.ceil(2e7 / (m * n * k))),
    seconds,
  });
/** Returns the tasks whose names contain one of the words, or all. `seconds`: how long each product is repeated. */
export function tasksOf(seconds: number, words: readonly string[]): Task[] {
  const multiplied = product(seconds);
  return [
    mlp(32, 300),
    mlp(512, 60),
    ...[64, 128, 256, 512, 1024, 2048].map((size) => multiplied('square', size, size, size)),
    multiplied('mlp forward', 32, 512, 784, false, true),
    multiplied('mlp weight gradient', 512, 784, 32, true),
    multiplied('mlp input gradient', 32, 512, 512),
    multiplied('mlp 512 forward', 512, 512, 784, false, true),
    multiplied('gpt qkv', 1024, 2304, 768, false, true),
    multiplied('gpt mlp', 1024, 3072, 768, false, true),
    multiplied('gpt weight gradient', 768, 3072, 1024, true),
    ...layerTasks(seconds),
  ].filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
}

const noise = (seed: number, count: number): Float32Array => {
  const array = new Float32Array(count);
  generator(seed).uniform(array, -1, 1);
  return array;
};

/** What the tasks compute with: images and labels for the MLPs, and two matrices. */
export function inputsOf(tasks: readonly Task[]) {
  const largest = Math.max(...tasks.map((task) => (task.kind === 'mlp' ? task.batch * task.batches : 0)));
  return {
    images: noise(1, largest * 784),
    labels: Int32Array.from({ length: largest }, (_, i) => (i * 7) % 10),
    left: noise(2, 2048 * 2048),
    right: noise(3, 2048 * 2048),
  };
}

export type Inputs = ReturnType<typeof inputsOf>;

export function newModel(sizes: readonly number[]): Sequential {
  manualSeed(1);
  const layers = sizes.slice(1).map((size, i) => new Linear(sizes[i]!, size));
  return new Sequential(...layers.flatMap((layer, i) => (i === 0 ? [layer] : [new ReLU(), layer])));
}

const nowUs = (): number => Number(process.hrtime.bigint()) / 1000;

function trainMlp(task: Mlp, { images, labels }: Inputs): Result {
  const { batch, batches, sizes, lr, momentum, warmup, steps } = task;
  const model = newModel(sizes);
  const optimizer = new SGD(model.parameters(), { lr, momentum });
  const times: number[] = [];
  const losses: number[] = [];
  for (let step = 0; step < warmup + steps; step++) {
    const start = nowUs();
    const at = (step % batches) * batch;
    const loss = scope(() => {
      const x = fromHost(images.subarray(at * 784, (at + batch) * 784), [batch, 784]);
      const out = crossEntropy(model.forward(x), fromHost(labels.subarray(at, at + batch)));
      optimizer.zeroGrad();
      out.backward();
      optimizer.step();
      return out.item();
    });
    times.push(nowUs() - start);
    if (step % 10 === 0) losses.push(loss);
  }
  return { us: median(times.slice(warmup)), check: losses };
}

function multiply(task: Matmul, { left, right }: Inputs): Result {
  const { m, n, k, transA, transB, calls, seconds } = task;
  return scope(() => {
    const a = fromHost(left.subarray(0, m * k), transA ? [k, m] : [m, k]);
    const b = fromHost(right.subarray(0, k * n), transB ? [n, k] : [k, n]);
    const [x, y] = [transA ? a.t() : a, transB ? b.t() : b];
    const times: number[] = [];
    for (const end = nowUs() + seconds * 1e6; times.length < 5 || nowUs() < end; ) {
      const start = nowUs();
      for (let i = 0; i < calls; i++) matmul(x, y).dispose();
      times.push((nowUs() - start) / calls);
    }
    const out = matmul(x, y).dataSync() as Float32Array;
    const sum = out.reduce((total, value) => total + value, 0);
    return { us: median(times), check: [out[0]!, out[m * n - 1]!, sum] };
  });
}

export function runTask(task: Task, inputs: Inputs): Result {
  if (task.kind === 'mlp') return trainMlp(task, inputs);
  if (task.kind === 'matmul') return multiply(task, inputs);
  const { times, check } = runLayer(task, inputs.left, inputs.right);
  return { us: median(times), check };
}

/** Tells whether two programs have computed the same, up to rounding. */
export function agree(task: Task, ours: Result, theirs: Result): boolean {
  // Gradients of both signs cancel in the second sum.
  if (task.kind === 'layer')
    return ours.check.every((value, i) => Math.abs(value - theirs.check[i]!) <= 1e-3 * Math.abs(value) + i);
  // An element of the product sums k products of numbers below 1, so its rounding error is of this order. The
  // sum of all elements may be off by more: by the square root of their number.
  const allowed = task.kind === 'mlp' ? 0 : 1e-4 * Math.sqrt(task.k);
  return ours.check.every((value, i) => {
    const share = i === 2 && task.kind === 'matmul' ? Math.sqrt(task.m * task.n) : 1;
    return Math.abs(value - theirs.check[i]!) <= 1e-4 * Math.abs(value) + allowed * share;
  });
}
