// Compares training steps and matrix products with PyTorch: the same numbers, one thread, in turns within one run.
//
//   npx tsx bench/tensor-peers.ts [--python python3,venv/bin/python] [--rounds 3] [--seconds 0.15]
//       [--only mlp,square]
//
// Each round runs our code, then the peer program with each python that has torch. Prints a JSON line per task: the
// medians of the rounds in µs; `ratio`, the fastest peer's time over ours (above 1: ours is faster); and whether the
// results agree: every tenth loss of an MLP's run within 1e-4 of itself; of a matrix product two elements and the sum
// of all, within the rounding errors that agree() allows. The exit code is 1 if results do not agree.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  crossEntropy,
  fromHost,
  generator,
  manualSeed,
  matmul,
  scope,
  setNumThreads,
} from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: '/usr/bin/python3' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '0.15' },
    only: { type: 'string', default: '' },
  },
});
setNumThreads(1);

interface Mlp {
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
interface Matmul {
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
interface Result {
  readonly us: number;
  readonly check: readonly number[];
}

const seconds = Number(values.seconds);
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
const product = (name: string, m: number, n: number, k: number, transA = false, transB = false): Matmul => ({
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
const wanted = values.only.split(',').filter((name) => name !== '');
const tasks: readonly (Mlp | Matmul)[] = [
  mlp(32, 300),
  mlp(512, 60),
  ...[64, 128, 256, 512, 1024, 2048].map((size) => product('square', size, size, size)),
  product('mlp forward', 32, 512, 784, false, true),
  product('mlp weight gradient', 512, 784, 32, true),
  product('mlp input gradient', 32, 512, 512),
  product('mlp 512 forward', 512, 512, 784, false, true),
  product('gpt qkv', 1024, 2304, 768, false, true),
  product('gpt mlp', 1024, 3072, 768, false, true),
  product('gpt weight gradient', 768, 3072, 1024, true),
].filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)));

const folder = mkdtempSync(join(tmpdir(), 'tensor-peers-'));
const write = (name: string, array: Float32Array | Int32Array): void =>
  writeFileSync(join(folder, name), new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
const noise = (seed: number, count: number): Float32Array => {
  const array = new Float32Array(count);
  generator(seed).uniform(array, -1, 1);
  return array;
};

const largest = Math.max(...tasks.map((task) => (task.kind === 'mlp' ? task.batch * task.batches : 0)));
const images = noise(1, largest * 784);
const labels = Int32Array.from({ length: largest }, (_, i) => (i * 7) % 10);
const [left, right] = [noise(2, 2048 * 2048), noise(3, 2048 * 2048)];

function newModel(sizes: readonly number[]): Sequential {
  manualSeed(1);
  const layers = sizes.slice(1).map((size, i) => new Linear(sizes[i]!, size));
  return new Sequential(...layers.flatMap((layer, i) => (i === 0 ? [layer] : [new ReLU(), layer])));
}

const nowUs = (): number => Number(process.hrtime.bigint()) / 1000;
const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!;

function trainMlp({ batch, batches, sizes, lr, momentum, warmup, steps }: Mlp): Result {
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

function multiply({ m, n, k, transA, transB, calls }: Matmul): Result {
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

function agree(task: Mlp | Matmul, ours: Result, theirs: Result): boolean {
  // An element of the product sums k products of numbers below 1, so its rounding error is of this order. The
  // sum of all elements may be off by more: by the square root of their number.
  const allowed = task.kind === 'mlp' ? 0 : 1e-4 * Math.sqrt(task.k);
  return ours.check.every((value, i) => {
    const share = i === 2 && task.kind === 'matmul' ? Math.sqrt(task.m * task.n) : 1;
    return Math.abs(value - theirs.check[i]!) <= 1e-4 * Math.abs(value) + allowed * share;
  });
}

function runPeer(python: string): Map<string, Result> {
  const program = join(import.meta.dirname, 'peers', 'torch_tensor.py');
  const lines = execFileSync(python, [program, folder], { encoding: 'utf8', timeout: 600_000 });
  const results = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result & { name: string });
  return new Map(results.map((result) => [result.name, result]));
}

try {
  write('images', images);
  write('labels', labels);
  write('a', left);
  write('b', right);
  for (const [i, [name, param]] of newModel([784, 512, 512, 10]).namedParameters().entries()) {
    write(`${name.endsWith('weight') ? 'w' : 'b'}${i >> 1}`, param.dataSync() as Float32Array);
  }
  writeFileSync(join(folder, 'tasks.json'), JSON.stringify(tasks));
  const hasTorch = (python: string): boolean => spawnSync(python, ['-c', 'import torch, numpy']).status === 0;
  const pythons = values.python.split(',').filter((python) => {
    const found = hasTorch(python);
    if (!found) console.error(`${python}: no torch or no numpy there, left out`);
    return found;
  });
  const ours = new Map<string, Result[]>();
  const theirs = pythons.map(() => new Map<string, Result[]>());
  const keep = (results: Map<string, Result[]>, name: string, result: Result): void =>
    void results.set(name, [...(results.get(name) ?? []), result]);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const task of tasks) keep(ours, task.name, task.kind === 'mlp' ? trainMlp(task) : multiply(task));
    for (const [i, python] of pythons.entries()) {
      for (const [name, result] of runPeer(python)) keep(theirs[i]!, name, result);
    }
  }
  for (const task of tasks) {
    const middle = (results: readonly Result[]): number => median(results.map(({ us }) => us));
    const own = ours.get(task.name)!;
    const peers = theirs.map((results) => results.get(task.name)!);
    const peerUs = peers.map(middle);
    const ok = peers.every((results) => agree(task, own[0]!, results[0]!));
    if (!ok) process.exitCode = 1;
    const line = { task: task.name, us: middle(own), peerUs, ratio: Math.min(...peerUs) / middle(own), ok };
    console.log(
      JSON.stringify(line, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)),
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
