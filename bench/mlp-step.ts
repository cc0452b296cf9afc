// One training step of the MLP 784-512-512-10 at batch 32 on one process, in the eager path.
//
//   npx tsx bench/mlp-step.ts [--steps 500]
//
// Prints one JSON line: the median step and its parts in microseconds, and samples per second. The labels follow from
// the images, so the loss must fall; if it does not, the line says ok: false and the exit code is 1.
import { parseArgs } from 'node:util';
import { crossEntropy, fromHost, generator, kernelsName, manualSeed, memory, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const { values } = parseArgs({ options: { steps: { type: 'string', default: '500' } } });
const steps = Number(values.steps);
const batch = 32;
const pixels = 784;
const batches = 20;

manualSeed(1);
const images = new Float32Array(batches * batch * pixels);
generator(2).uniform(images);
const labels = new Int32Array(batches * batch);
for (let i = 0; i < labels.length; i++) {
  labels[i] = i % 10;
  // A bright block per class.
  images.fill(1, i * pixels + (i % 10) * 70, i * pixels + (i % 10) * 70 + 70);
}

const model = new Sequential(
  new Linear(pixels, 512),
  new ReLU(),
  new Linear(512, 512),
  new ReLU(),
  new Linear(512, 10),
);
const optimizer = new SGD(model.parameters(), { lr: 0.01, momentum: 0.9 });

const now = (): number => Number(process.hrtime.bigint()) / 1000;
const median = (times: number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1]!;
const times = {
  forward: [] as number[],
  backward: [] as number[],
  optimizer: [] as number[],
  step: [] as number[],
};

function step(i: number): number {
  const at = i % batches;
  const start = now();
  return scope(() => {
    const x = fromHost(images.subarray(at * batch * pixels, (at + 1) * batch * pixels), [batch, pixels]);
    const y = fromHost(labels.subarray(at * batch, (at + 1) * batch));
    const loss = crossEntropy(model.forward(x), y);
    const forward = now();
    optimizer.zeroGrad();
    loss.backward();
    const backward = now();
    optimizer.step();
    const end = now();
    times.forward.push(forward - start);
    times.backward.push(backward - forward);
    times.optimizer.push(end - backward);
    times.step.push(end - start);
    return loss.item();
  });
}

const firstLoss = step(0);
for (let i = 1; i < steps / 10; i++) step(i);
for (const list of Object.values(times)) list.length = 0;
const begin = now();
let lastLoss = firstLoss;
for (let i = 0; i < steps; i++) lastLoss = step(i);
const elapsedUs = now() - begin;

const ok = lastLoss < firstLoss;
const line = {
  bench: 'mlp-step',
  kernels: kernelsName(),
  batch,
  steps,
  stepUs: median(times.step),
  forwardUs: median(times.forward),
  backwardUs: median(times.backward),
  optimizerUs: median(times.optimizer),
  samplesPerSecond: (steps * batch * 1e6) / elapsedUs,
  peakBytes: memory().peakBytes,
  firstLoss,
  lastLoss,
  ok,
};
console.log(
  JSON.stringify(line, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)),
);
process.exitCode = ok ? 0 : 1;
