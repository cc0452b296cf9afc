// Trains a digit classifier in one process. mnist-ddp.ts is the same program in many processes: compare the two.
//
//   npx ringwise run examples/mnist.ts                 10,000 generated digits
//   npx ringwise run examples/mnist.ts --data DIR      MNIST's t10k files, or others in that format
//   … --epochs 6 --batch-size 32 --json                epochs, samples of a step of a rank, one JSON line at the end
//
// Claim: the trained network classifies at least 9 of 10 held-out digits correctly.
import { ArrayDataset, DataLoader, normalize, RandomSampler } from '@ringwise/data';
import { loadMnist } from '@ringwise/data/idx';
import { syntheticDigits } from '@ringwise/data/synthetic';
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
const batchSize = whole('--batch-size', args['batch-size']);

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

manualSeed(1);
const net = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 10));
const model = net;
const optimizer = new SGD(net.parameters(), { lr: 0.05, momentum: 0.9 });
const sampler = new RandomSampler(train.length);
const loader = new DataLoader(train, { batchSize, sampler });
const log = console.log;

const start = performance.now();
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
      const [mean, samples] = [loss.item(), label.shape[0]!];
      const progress = { epoch, epochs, steps: epochs * loader.length };
      reportMetrics({ ...progress, loss: mean, samples });
      if (step % 25 === 0 || step === loader.length)
        log(`epoch ${epoch + 1}/${epochs}  step ${step}/${loader.length}  loss ${mean.toFixed(4)}`);
    });
  }
}
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
if (args.json) log(JSON.stringify({ accuracy, worldSize: 1, samplesPerSecond, seconds }));
if (accuracy < 0.9) throw new Error(`expected an accuracy of at least 0.9, got ${accuracy}`);
