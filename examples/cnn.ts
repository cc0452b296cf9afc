// Trains a small convolutional network on digits, with batch norm over the batches of all ranks, and saves it so that
// PyTorch can open it.
//
//   npx ringwise run --nproc-per-node 2 examples/cnn.ts                 10,000 generated digits
//   npx ringwise run --nproc-per-node 2 examples/cnn.ts --data DIR      MNIST's t10k files, or others in that format
//
// Claim: after two epochs on 8,000 digits, the network classifies at least 95 of 100 held-out digits correctly. A
// second network that loads the saved file, with the running statistics of batch norm, has exactly the same accuracy.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { loadMnist } from '@ringwise/data/idx';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { convertSyncBatchNorm, ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, fromHost, manualSeed, noGrad, scope } from '@ringwise/tensor';
import {
  BatchNorm2d,
  Conv2d,
  Flatten,
  type Layer,
  Linear,
  MaxPool2d,
  ReLU,
  Sequential,
} from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { loadSafetensors, saveSafetensors } from '@ringwise/tensor/safetensors';
import { readOptions } from './options.ts';

const args = readOptions(import.meta.url, { data: { type: 'string' } });
const epochs = 2;

// The first 8,000 digits are for training, the rest are held out.
const digits = args.data ? await loadMnist(args.data, { split: 'test' }) : syntheticDigits({ count: 10_000 });
const pixels = normalize(digits.images.data, { mean: 0.12, std: 0.29 });
const labels = Int32Array.from(digits.labels.data);
const part = (from: number, to = labels.length) =>
  new ArrayDataset({
    image: { data: pixels.subarray(from * 784, to * 784), shape: [1, 28, 28] },
    label: { data: labels.subarray(from, to), shape: [] },
  });
const [train, heldOut] = [part(0, 8_000), part(8_000)];

/** Makes a network that turns one plane of 28 × 28 pixels into 8 of 14 × 14, then 16 of 7 × 7, then 10 scores. */
const network = () =>
  new Sequential(
    new Conv2d(1, 8, 3, { padding: 'same', bias: false }),
    new BatchNorm2d(8),
    new ReLU(),
    new MaxPool2d(2),
    new Conv2d(8, 16, 3, { padding: 'same', bias: false }),
    new BatchNorm2d(16),
    new ReLU(),
    new MaxPool2d(2),
    new Flatten(),
    new Linear(16 * 7 * 7, 10),
  );

/** Returns the fraction of the held-out digits that `model` classifies correctly. */
function accuracyOf(model: Layer): number {
  model.eval();
  let correct = 0;
  for (const { image, label } of new DataLoader(heldOut, { batchSize: 250 })) {
    correct += scope(() => {
      const guess = noGrad(() => model.forward(fromHost(image.data, image.shape)).argmax(1));
      return guess.eq(fromHost(label.data)).sum().item();
    });
  }
  return correct / heldOut.length;
}

await using group = await init();
manualSeed(1);
const net = network();
await convertSyncBatchNorm(net, group); // before ddp()
const model = await ddp(net, { group });
const optimizer = new SGD(net.parameters(), { lr: 0.05, momentum: 0.9 });
const sampler = new DistributedSampler(train.length, { replicas: group.size, rank: group.rank });
const loader = new DataLoader(train, { batchSize: Math.ceil(32 / group.size), sampler });

for (let epoch = 0; epoch < epochs; epoch++) {
  sampler.setEpoch(epoch);
  let step = 0;
  for await (const { image, label } of loader) {
    step++;
    scope(() => {
      const loss = crossEntropy(model.forward(fromHost(image.data, image.shape)), fromHost(label.data));
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      const progress = { epoch, epochs, steps: epochs * loader.length };
      reportMetrics({ ...progress, loss: loss.item(), samples: label.shape[0]!, ddp: model.statistics() });
      if (group.rank === 0 && step % 50 === 0)
        console.log(
          `epoch ${epoch + 1}/${epochs}  step ${step}/${loader.length}  loss ${loss.item().toFixed(4)}`,
        );
    });
  }
}

if (group.rank === 0) {
  const accuracy = accuracyOf(net);
  const folder = await mkdtemp(join(tmpdir(), 'ringwise-cnn-'));
  await saveSafetensors(join(folder, 'cnn.safetensors'), net.stateDict());
  const loaded = network();
  loaded.loadStateDict(await loadSafetensors(join(folder, 'cnn.safetensors')));
  await rm(folder, { recursive: true });
  const again = accuracyOf(loaded);
  console.log(
    `accuracy ${accuracy.toFixed(4)} on ${heldOut.length} held-out digits, ${again.toFixed(4)} after loading`,
  );
  if (accuracy < 0.95 || again !== accuracy)
    throw new Error(`expected an accuracy of at least 0.95, twice: ${accuracy}, ${again}`);
}
await group.barrier(); // the other ranks wait until rank 0 has checked
