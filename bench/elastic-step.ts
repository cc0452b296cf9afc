// Measures what a step of an elastic job costs beside the same step with plain DDP, while no rank is lost: the vote,
// the ledger of samples, the state to which a step could go back. Both take turns, step by step, on the same ranks.
//
//   npx ringwise run --nproc-per-node 2 bench/elastic-step.ts [--width 512] [--batch 32] [--steps 400]
import { parseArgs } from 'node:util';
import { ArrayDataset, DataLoader, DistributedSampler } from '@ringwise/data';
import { ddp } from '@ringwise/ddp';
import { elastic } from '@ringwise/elastic';
import { crossEntropy, fromHost, manualSeed, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { median } from './median.ts';

const { values } = parseArgs({
  options: {
    width: { type: 'string', default: '512' },
    batch: { type: 'string', default: '32' },
    steps: { type: 'string', default: '400' },
  },
});
const [width, batch, steps] = [values.width, values.batch, values.steps].map(Number) as [
  number,
  number,
  number,
];
const [features, classes] = [784, 10];

await using job = await elastic();
const size = Number(process.env.WORLD_SIZE);
const count = batch * size * steps;
const dataset = new ArrayDataset({
  x: { data: Float32Array.from({ length: 4096 * features }, (_, i) => Math.sin(i)), shape: [features] },
  y: { data: Int32Array.from({ length: 4096 }, (_, i) => i % classes), shape: [] },
});
const samples = { length: count, get: (index: number) => dataset.get(index % 4096) };

function network() {
  manualSeed(1);
  const layers = [new Linear(features, width), new ReLU(), new Linear(width, width), new ReLU()];
  return new Sequential(...layers, new Linear(width, classes));
}

type Batch = {
  readonly x: { readonly data: Float32Array; readonly shape: readonly number[] };
  readonly y: { readonly data: Int32Array };
};
const trainOn = ({ x, y }: Batch, forward: ReturnType<typeof network>['forward']): number =>
  scope(() => {
    const loss = crossEntropy(forward(fromHost(x.data, [...x.shape])), fromHost(y.data));
    loss.backward();
    return loss.item();
  });

const net = network();
const optimizer = new SGD(net.parameters(), { lr: 0.01, momentum: 0.9 });
const loader = job.loader(samples, { globalBatch: batch * size, microBatch: batch, shuffle: false });
const model = await job.ddp(net, { optimizer, loader });

const plainNet = network();
const plainOptimizer = new SGD(plainNet.parameters(), { lr: 0.01, momentum: 0.9 });
const plainModel = await ddp(plainNet, { group: job.group });
const sampler = new DistributedSampler(count, { rank: job.group.rank, replicas: size, shuffle: false });
const plainBatches = new DataLoader(samples, { batchSize: batch, sampler })[Symbol.asyncIterator]();

const [elasticMs, plainMs]: [number[], number[]] = [[], []];
async function plainStep(): Promise<void> {
  const { value } = await plainBatches.next();
  plainOptimizer.zeroGrad();
  trainOn(value as Batch, plainModel.forward);
  plainOptimizer.step();
}
for await (const { run, number } of job.steps(loader, { epochs: 1 })) {
  const began = performance.now();
  await run((each) => trainOn(each as unknown as Batch, model.forward));
  const between = performance.now();
  await plainStep();
  const ended = performance.now();
  if (number < steps / 10) continue; // warm-up
  elasticMs.push(between - began);
  plainMs.push(ended - between);
}
const [withElastic, plain] = [median(elasticMs), median(plainMs)];
const more = median(elasticMs.map((ms, i) => ms - plainMs[i]!));
if (job.leader)
  console.log(
    `${size} ranks, width ${width}, batch ${batch}: elastic ${withElastic.toFixed(3)} ms, plain DDP ${plain.toFixed(3)} ms, ` +
      `ratio ${(withElastic / plain).toFixed(3)}; pairs differ by ${(more * 1000).toFixed(0)} µs`,
  );
