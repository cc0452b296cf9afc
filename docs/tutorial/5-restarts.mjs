// Saves a snapshot after each epoch and continues from it. In its first run, rank 1 fails after the second epoch; the
// launcher then starts all ranks again.
import { init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler } from '@ringwise/data';
import { ddp, loadSnapshot, saveSnapshot } from '@ringwise/ddp';
import { fromHost, manualSeed, mseLoss, scope } from '@ringwise/tensor';
import { Linear } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const file = process.argv[2] ?? 'tutorial.snapshot';
const group = await init();
const dataset = new ArrayDataset({
  x: { data: Float32Array.from({ length: 64 }, (_, i) => i / 64), shape: [1] },
  y: { data: Float32Array.from({ length: 64 }, (_, i) => (3 * i) / 64), shape: [1] },
});
const sampler = new DistributedSampler(dataset.length, { replicas: group.size, rank: group.rank });
const loader = new DataLoader(dataset, { batchSize: 4, sampler });
manualSeed(1);
const net = new Linear(1, 1);
const optimizer = new SGD(net.parameters(), { lr: 0.5 });

const tensor = ({ data, shape }) => fromHost(data, shape);
const saved = await loadSnapshot(file, group, { tensor }); // null if there is none
if (saved) {
  net.loadStateDict(saved.net);
  optimizer.loadStateDict(saved.optimizer);
}
const first = saved ? saved.epoch + 1 : 0;
if (group.rank === 0) {
  console.log(
    first < 6 ? `begins with epoch ${first + 1}` : `${file} has all epochs; remove it to train again`,
  );
}

const model = await ddp(net, { group });
for (let epoch = first; epoch < 6; epoch++) {
  sampler.setEpoch(epoch);
  for await (const { x, y } of loader) {
    scope(() => {
      optimizer.zeroGrad();
      mseLoss(model.forward(fromHost(x.data, x.shape)), fromHost(y.data, y.shape)).backward();
    });
    await model.finish();
    optimizer.step();
  }
  // Every rank calls it; rank 0 writes the file.
  await saveSnapshot(file, { epoch, net: net.stateDict(), optimizer: optimizer.stateDict() }, group);
  if (epoch === 1 && group.rank === 1 && !saved) throw new Error('rank 1 gives up, once');
}
if (group.rank === 0) console.log(`weight ${net.weight.item().toFixed(2)}, should be 3`);
await group.close();
