// The training whose live page is shown in the docs: real ranks, real gradients, generated digits. With --spoil STEP
// the learning rate becomes absurd at that step, so that the loss becomes NaN; 80 steps later the last rank fails.
import { parseArgs } from 'node:util';
import { init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, fromHost, manualSeed, noGrad, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const { values: args } = parseArgs({ options: { spoil: { type: 'string', default: 'Infinity' } } });
const spoiledFrom = Number(args.spoil);
const epochs = 6;
const batchSize = 32;
const group = await init();
const { images, labels } = syntheticDigits({ count: 6_000 });
const pixels = normalize(images.data, { mean: 0.12, std: 0.29 });
const classes = Int32Array.from(labels.data);
const held = 1_000;
const count = classes.length - held;
const dataset = new ArrayDataset({
  image: { data: pixels.subarray(0, count * 784), shape: [784] },
  label: { data: classes.subarray(0, count), shape: [] },
});
const sampler = new DistributedSampler(count, { replicas: group.size, rank: group.rank });
const loader = new DataLoader(dataset, { batchSize, sampler });

manualSeed(1);
const net = new Sequential(
  new Linear(784, 512),
  new ReLU(),
  new Linear(512, 512),
  new ReLU(),
  new Linear(512, 10),
);
const model = await ddp(net, { group });
const optimizer = new SGD(net.parameters(), { lr: 0.02, momentum: 0.9 });
const steps = epochs * loader.length;
const warmUp = 40;

/** Returns the learning rate: it rises linearly, then falls along a cosine. */
function rateAt(step) {
  if (step >= spoiledFrom) return 1e9;
  const share = (step - warmUp) / (steps - warmUp);
  return 0.02 * (step < warmUp ? (step + 1) / warmUp : 0.5 * (1 + Math.cos(Math.PI * share)));
}

/** Returns the share of rows whose largest number is at the index of their class. */
function accuracyOf(output, labels) {
  const guesses = output.argmax(1).dataSync();
  return labels.filter((label, row) => Number(guesses[row]) === label).length / labels.length;
}

function validated() {
  const labels = classes.subarray(count);
  return noGrad(() =>
    scope(() => {
      const output = model.forward(fromHost(pixels.subarray(count * 784), [held, 784]));
      return {
        valLoss: crossEntropy(output, fromHost(labels)).item(),
        valAccuracy: accuracyOf(output, labels),
      };
    }),
  );
}

let step = 0;
for (let epoch = 0; epoch < epochs; epoch++) {
  sampler.setEpoch(epoch);
  for await (const { image, label } of loader) {
    optimizer.lr = rateAt(step);
    const told = scope(() => {
      const output = model.forward(fromHost(image.data, image.shape));
      const loss = crossEntropy(output, fromHost(label.data));
      const values = { loss: loss.item(), accuracy: accuracyOf(output, label.data) };
      optimizer.zeroGrad();
      loss.backward();
      return values;
    });
    await model.finish();
    optimizer.step();
    const far = { step, steps, epoch, epochs, lr: optimizer.lr };
    reportMetrics({ ...told, ...far, samples: batchSize, ddp: model.statistics() });
    if (step === spoiledFrom + 80 && group.rank === group.size - 1) {
      throw new RangeError(`the label 11 of sample ${step} is outside of 10 classes`);
    }
    step++;
  }
  const values = validated();
  reportMetrics({ step: step - 1, ...values });
  const shown = values.valLoss.toFixed(4);
  if (group.rank === 0) console.log(`epoch ${epoch + 1} of ${epochs}: validation loss ${shown}`);
}
await group.close();
