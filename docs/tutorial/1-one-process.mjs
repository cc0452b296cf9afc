// Trains a classifier of handwritten digits in one process.
import { ArrayDataset, DataLoader, normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { crossEntropy, fromHost, manualSeed, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';

const { images, labels } = syntheticDigits({ count: 2000 });
const dataset = new ArrayDataset({
  image: { data: normalize(images.data), shape: [784] }, // the shape of one sample
  label: { data: Int32Array.from(labels.data), shape: [] },
});
const loader = new DataLoader(dataset, { batchSize: 50, shuffle: true });

manualSeed(1);
const net = new Sequential(new Linear(784, 32), new ReLU(), new Linear(32, 10));
const optimizer = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 });

for (let epoch = 0; epoch < 3; epoch++) {
  let sum = 0;
  for await (const { image, label } of loader) {
    // A scope gives the memory of a step back at its end.
    sum += scope(() => {
      const loss = crossEntropy(net.forward(fromHost(image.data, image.shape)), fromHost(label.data));
      const value = loss.item(); // read it before backward, which gives its memory back
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return value;
    });
  }
  console.log(`epoch ${epoch + 1}: loss ${(sum / loader.length).toFixed(3)}`);
}
