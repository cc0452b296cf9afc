// Code that bench.mjs and bench-ddp.mjs share.
import { crossEntropy, randint, randn } from '../../packages/tensor/dist/index.js';
import { Linear, ReLU, Sequential } from '../../packages/tensor/dist/nn/index.js';
import { SGD } from '../../packages/tensor/dist/optim/index.js';

export const device = 'cuda';
export const isSmall = process.argv.includes('--small');
export const size = (full, small) => (isSmall ? small : full);
export const rows = [];

export function microseconds(run) {
  const start = process.hrtime.bigint();
  run();
  return Number(process.hrtime.bigint() - start) / 1000;
}

export const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
export const medianOf = (times, measure) => median(Array.from({ length: times }, measure));

/**
 * Makes a training step of the MLP 784-512-512-10 at batch 32, as a function. `wrap` returns or resolves with the model
 * whose forward() the step calls.
 */
export async function mlp(wrap = (net) => net) {
  const net = new Sequential(
    new Linear(784, 512),
    new ReLU(),
    new Linear(512, 512),
    new ReLU(),
    new Linear(512, 10),
  ).to(device);
  const model = await wrap(net);
  const optimizer = new SGD(net.parameters(), { lr: 0.01 });
  const x = randn([32, 784], { device });
  const y = randint(0, 10, [32], { device });
  return () => {
    const loss = crossEntropy(model.forward(x), y);
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
  };
}
