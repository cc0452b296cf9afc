// One DDP training step of the MLP 784-512-512-10 at batch 32, data loading included.
//
//   npx ringwise run --nproc-per-node 2 bench/ddp-mlp.ts [--steps 500] [--alone]
//
// --alone trains without DDP: what the same processes do when they never talk. Rank 0 prints one JSON line: median
// step in microseconds, samples per second of all ranks together, and whether the replicas ended in sync.
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { ddp, inSync } from '@ringwise/ddp';
import { crossEntropy, fromHost, kernelsName, manualSeed, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const { values: args } = parseArgs({
  options: { steps: { type: 'string', default: '500' }, alone: { type: 'boolean', default: false } },
});
const steps = Number(args.steps);
const batchSize = 32;

await using group = await init();
const { images, labels } = syntheticDigits({ count: 8_000 });
const dataset = new ArrayDataset({
  image: { data: normalize(images.data, { mean: 0.11, std: 0.25 }), shape: [784] },
  label: { data: Int32Array.from(labels.data), shape: [] },
});
const sampler = new DistributedSampler(dataset.length, { replicas: group.size, rank: group.rank });
const loader = new DataLoader(dataset, { batchSize, sampler, dropLast: true });

manualSeed(1);
const net = new Sequential(
  new Linear(784, 512),
  new ReLU(),
  new Linear(512, 512),
  new ReLU(),
  new Linear(512, 10),
);
const model = args.alone ? net : await ddp(net, { group });
const optimizer = new SGD(net.parameters(), { lr: 0.01 });

const warmUp = 50;
const times: number[] = [];
await group.barrier();
let start = performance.now();
for (let epoch = 0; times.length < steps + warmUp; epoch++) {
  sampler.setEpoch(epoch);
  let before = performance.now();
  for await (const { image, label } of loader) {
    scope(() => {
      const loss = crossEntropy(model.forward(fromHost(image.data, image.shape)), fromHost(label.data));
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
    });
    const now = performance.now();
    times.push(now - before);
    before = now;
    if (times.length === warmUp) start = now;
    if (times.length === steps + warmUp) break;
  }
}
const seconds = (performance.now() - start) / 1000;
await group.barrier();

const isInSync = await inSync(net, group);
const sorted = times.slice(warmUp).sort((a, b) => a - b);
if (group.rank === 0) {
  const stepUs = Math.round(sorted[sorted.length >> 1]! * 1000);
  const samplesPerSecond = Math.round((steps * batchSize * group.size) / seconds);
  const ok = args.alone || isInSync;
  console.log(
    JSON.stringify({
      bench: 'ddp-mlp',
      kernels: kernelsName(),
      ranks: group.size,
      alone: args.alone,
      stepUs,
      samplesPerSecond,
      ok,
    }),
  );
  if (!ok) process.exitCode = 1;
}
