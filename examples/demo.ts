// Trains a small convolutional network on generated digits, on any number of ranks. `npm run demo` runs it on one rank
// and then on two, and compares the times.
//
//   npx ringwise run --nproc-per-node 2 examples/demo.ts
//   … --epochs 3 --batch 256 --digits 8192      epochs, samples of a step on all ranks together, digits to train on
//   … --json                                    one JSON line at the end
//
// Claim: all ranks end with the same bits, and with the defaults the loss falls to less than a third.
import { init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { ddp, inSync } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, fromHost, manualSeed, scope } from '@ringwise/tensor';
import { Conv2d, Flatten, Linear, MaxPool2d, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, {
  epochs: { type: 'string', default: '3' },
  batch: { type: 'string', default: '256' },
  digits: { type: 'string', default: '8192' },
  json: { type: 'boolean', default: false },
});
const epochs = whole('--epochs', args.epochs);
const count = whole('--digits', args.digits);
const batch = whole('--batch', args.batch);

await using group = await init();
const { rank, size } = group;
const log = rank === 0 ? console.log : () => {};
const { images, labels } = syntheticDigits({ count });
const data = new ArrayDataset({
  image: { data: normalize(images.data, { mean: 0.12, std: 0.29 }), shape: [1, 28, 28] },
  label: { data: Int32Array.from(labels.data), shape: [] },
});
const sampler = new DistributedSampler(count, { replicas: size, rank });
const loader = new DataLoader(data, { batchSize: Math.max(1, Math.round(batch / size)), sampler });

manualSeed(1);
const net = new Sequential(
  ...[new Conv2d(1, 8, 3, { padding: 'same' }), new ReLU(), new MaxPool2d(2)],
  ...[new Conv2d(8, 16, 3, { padding: 'same' }), new ReLU(), new MaxPool2d(2)],
  ...[new Flatten(), new Linear(16 * 7 * 7, 10)],
);
const model = await ddp(net, { group });
const optimizer = new SGD(net.parameters(), { lr: 0.01, momentum: 0.9 });

await group.barrier(); // all ranks have started: what follows is training, and is timed
const start = performance.now();
const losses: number[] = [];
for (let epoch = 0; epoch < epochs; epoch++) {
  sampler.setEpoch(epoch);
  const sum = new Float64Array(1);
  let step = 0;
  for await (const { image, label } of loader) {
    const loss = scope(() => {
      const loss = crossEntropy(model.forward(fromHost(image.data, image.shape)), fromHost(label.data));
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    });
    sum[0]! += loss;
    const progress = { epoch, epochs, steps: epochs * loader.length };
    reportMetrics({ ...progress, loss, samples: label.shape[0]!, ddp: model.statistics() });
    step++;
    log(`epoch ${epoch + 1}/${epochs}  step ${step}/${loader.length}  loss ${loss.toFixed(4)}`);
  }
  await group.allReduce(sum, { op: 'avg' });
  losses.push(sum[0]! / loader.length);
}
const seconds = (performance.now() - start) / 1000;

const [first, loss] = [losses[0]!, losses.at(-1)!];
const isInSync = await inSync(net, group);
log(`loss ${first.toFixed(4)} → ${loss.toFixed(4)} in ${seconds.toFixed(2)} s on ${size} ranks`);
if (args.json)
  log(JSON.stringify({ ranks: size, seconds, first, loss, inSync: isInSync, samples: count * epochs }));
const isLong = epochs * loader.length >= 96; // as many steps as by default
if (!isInSync || (isLong && !(loss < first / 3)))
  throw new Error(
    `expected a falling loss and ranks in sync, got ${losses.join(', ')}, in sync: ${isInSync}`,
  );
