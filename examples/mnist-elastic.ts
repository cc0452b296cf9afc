// Trains a digit classifier in many processes, and goes on when processes are lost or join. mnist-ddp.ts is the same
// program without that: compare the two.
//
//   npx ringwise run --elastic --nproc-per-node 3 examples/mnist-elastic.ts             10,000 generated digits
//   npx ringwise run --elastic --nproc-per-node 3 examples/mnist-elastic.ts --data DIR  MNIST's t10k files
//   … --epochs 6 --batch-size 32 --json                epochs, half the samples of a step (even), JSON at the end
//
// Kill the rank that started last while it trains: kill -9 $(pgrep -nf mnist-elastic.ts). The others go on with the
// step in flight, and the launcher starts the rank again, which gets their state.
//
// Claim: the trained network classifies at least 9 of 10 held-out digits correctly.
import { ArrayDataset, DataLoader, normalize } from '@ringwise/data';
import { loadMnist } from '@ringwise/data/idx';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { inSync } from '@ringwise/ddp';
import { elastic } from '@ringwise/elastic';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, fromHost, manualSeed, noGrad, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, {
  data: { type: 'string' },
  epochs: { type: 'string', default: '6' },
  'batch-size': { type: 'string', default: '32' },
  json: { type: 'boolean', default: false },
});
const epochs = whole('--epochs', args.epochs, 0);
const batchSize = 2 * Math.ceil(whole('--batch-size', args['batch-size']) / 2); // half of it is a micro-batch

// The first 8,000 digits are for training, the rest are held out.
const digits = args.data ? await loadMnist(args.data, { split: 'test' }) : syntheticDigits({ count: 10_000 });
const pixels = normalize(digits.images.data, { mean: 0.12, std: 0.29 });
const labels = Int32Array.from(digits.labels.data);
const part = (from: number, to = labels.length) =>
  new ArrayDataset({
    image: { data: pixels.subarray(from * 784, to * 784), shape: [784] },
    label: { data: labels.subarray(from, to), shape: [] },
  });
const train = part(0, 8_000);
const heldOut = part(8_000);

await using job = await elastic();
manualSeed(1);
const net = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 10));
const optimizer = new SGD(net.parameters(), { lr: 0.05, momentum: 0.9 });
const loader = job.loader(train, { globalBatch: 2 * batchSize, microBatch: batchSize / 2 });
const model = await job.ddp(net, { optimizer, loader });
const log = (text: string) => void (job.leader && console.log(text));

const start = performance.now();
for await (const { run, epoch, nth: step } of job.steps(loader, { epochs })) {
  const { mean, samples } = await run(({ image, label }) =>
    scope(() => {
      const loss = crossEntropy(model.forward(fromHost(image.data, image.shape)), fromHost(label.data));
      loss.backward();
      return loss.item();
    }),
  );
  const progress = { epoch, epochs, steps: epochs * loader.length };
  reportMetrics({ ...progress, loss: mean, samples });
  if (step % 25 === 0 || step === loader.length)
    log(`epoch ${epoch + 1}/${epochs}  step ${step}/${loader.length}  loss ${mean.toFixed(4)}`);
}
if (job.hasLeft) process.exit(0);
const { group } = job;
const seconds = (performance.now() - start) / 1000;

let correct = 0;
for (const { image, label } of new DataLoader(heldOut, { batchSize: 500 })) {
  correct += scope(() => {
    const guess = noGrad(() => model.forward(fromHost(image.data, image.shape)).argmax(1));
    return guess.eq(fromHost(label.data)).sum().item();
  });
}
const accuracy = correct / heldOut.length;
const samplesPerSecond = Math.round((train.length * epochs) / seconds);
log(`accuracy ${accuracy.toFixed(4)} on ${heldOut.length} held-out digits, ${samplesPerSecond} samples/s`);
const isInSync = await inSync(net, group);
log(isInSync ? `replicas in sync: ${group.size} ranks hold the same bits` : 'replicas NOT in sync');
if (args.json)
  log(JSON.stringify({ accuracy, worldSize: group.size, inSync: isInSync, samplesPerSecond, seconds }));
if (!isInSync || accuracy < 0.9) throw new Error(`got accuracy ${accuracy}, in sync: ${isInSync}`);
