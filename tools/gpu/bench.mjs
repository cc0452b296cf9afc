// Timings of @ringwise/tensor on cuda:0, one JSON array on standard output: { name, us, unit, rate }. The names are those
// of torch_bench.py.
import {
  crossEntropy,
  matmul,
  noGrad,
  randn,
  scope,
  synchronize,
  tensor,
} from '../../packages/tensor/dist/index.js';
import { Linear, ReLU, Sequential } from '../../packages/tensor/dist/nn/index.js';
import { SGD } from '../../packages/tensor/dist/optim/index.js';

const device = 'cuda';
const rows = [];

/** Microseconds per call: the median of 20 batches of `calls`, each waited for. */
function time(name, calls, unit, work, fn) {
  const batch = () => {
    const start = process.hrtime.bigint();
    // What a scope returns would outlive it.
    for (let i = 0; i < calls; i++) scope(() => void fn());
    synchronize(device);
    return Number(process.hrtime.bigint() - start) / 1000 / calls;
  };
  batch();
  const us = Array.from({ length: 20 }, batch).sort((a, b) => a - b)[10];
  rows.push({ name, us, unit, rate: unit === '' ? null : work / us / 1e6 });
}

noGrad(() => {
  const n = 1 << 26;
  const [a, b] = [randn([n]).to(device), randn([n]).to(device)];
  time('add 64Mi float32', 10, 'TB/s', 12 * n, () => a.add(b));
  time('gelu 64Mi float32', 10, 'TB/s', 8 * n, () => a.gelu());
  time('sum 64Mi float32', 10, 'TB/s', 4 * n, () => a.sum());
  time('transposed copy 8Ki x 8Ki float32', 10, 'TB/s', 8 * n, () =>
    a.reshape([8192, 8192]).t().contiguous(),
  );
  const small = randn([4, 4]).to(device);
  time('add 4 x 4 float32', 1000, '', 0, () => small.add(small));
  const x = randn([4096, 4096]).to(device);
  time('matmul 4096^3 float32', 3, 'TFLOP/s', 2 * 4096 ** 3, () => matmul(x, x));
  const logits = randn([8192, 4096]).to(device);
  time('logSoftmax 8192 x 4096 float32', 10, 'TB/s', 8 * 8192 * 4096, () => logits.logSoftmax(1));
});

const model = new Sequential(
  new Linear(784, 512),
  new ReLU(),
  new Linear(512, 512),
  new ReLU(),
  new Linear(512, 10),
).to(device);
const optimizer = new SGD(model.parameters(), { lr: 0.01 });
const x = randn([32, 784]).to(device);
const y = tensor(
  Int32Array.from({ length: 32 }, (_, i) => i % 10),
  { device },
);
time('MLP 784-512-512-10 step, batch 32, eager', 50, '', 0, () => {
  const loss = crossEntropy(model.forward(x), y);
  optimizer.zeroGrad();
  loss.backward();
  optimizer.step();
});
process.stdout.write(JSON.stringify(rows));
