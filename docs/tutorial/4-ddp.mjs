// Trains the classifier of step 1 on many ranks. New lines are marked.
import { init } from '@ringwise/collectives'; // new
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { assertInSync, ddp } from '@ringwise/ddp'; // new
import { crossEntropy, fromHost, manualSeed, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const group = await init(); // new
const { images, labels } = syntheticDigits({ count: 2000 });
const dataset = new ArrayDataset({
  image: { data: normalize(images.data), shape: [784] },
  label: { data: Int32Array.from(labels.data), shape: [] },
});
const sampler = new DistributedSampler(dataset.length, { replicas: group.size, rank: group.rank }); // new
const loader = new DataLoader(dataset, { batchSize: 50, sampler });

manualSeed(1);
const net = new Sequential(new Linear(784, 32), new ReLU(), new Linear(32, 10));
const model = await ddp(net, { group }); // new: all ranks start with the same values
const optimizer = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 });

for (let epoch = 0; epoch < 3; epoch++) {
  sampler.setEpoch(epoch); // new
  const sum = new Float64Array(1);
  for await (const { image, label } of loader) {
    sum[0] += scope(() => {
      const loss = crossEntropy(model.forward(fromHost(image.data, image.shape)), fromHost(label.data));
      const value = loss.item();
      optimizer.zeroGrad();
      loss.backward(); // gradients are averaged over the ranks meanwhile
      return value;
    });
    await model.finish(); // new: waits for the averages where backward could not
    optimizer.step();
  }
  await group.allReduce(sum, { op: 'avg' }); // new: the mean over all ranks
  if (group.rank === 0) console.log(`epoch ${epoch + 1}: loss ${(sum[0] / loader.length).toFixed(3)}`);
}
await assertInSync(model, group); // new: throws unless all ranks have the same parameters, bit for bit
await group.close(); // new
