// Trains a TensorFlow.js model with its own model.fit(), which one line makes data-parallel.
//
//   npx ringwise run --nproc-per-node 2 examples/tfjs/main.ts
//
// Claim: all ranks end with the same bits, and to within 1e-6 with the weights of one process that trains on the joined
// batches.
import { type Group, init } from '@ringwise/collectives';
import { normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import * as tf from '@tensorflow/tfjs';
import { dataParallel, flatten } from './data-parallel.ts';

const samples = 384;
const pixels = 14 * 14;
const batch = 24; // samples per step, of all ranks together
const { images, labels } = syntheticDigits({ count: samples, size: 14 });
const inputs = normalize(images.data);

/**
 * Returns this rank's samples: numbers rank, rank + size, rank + 2 · size and so on. The k-th batches of all ranks
 * together are then the k-th batch of one process.
 */
function share({ rank, size }: Group): { x: tf.Tensor; y: tf.Tensor } {
  const mine = Array.from({ length: samples / size }, (_, i) => i * size + rank);
  const x = new Float32Array(mine.length * pixels);
  for (const [row, i] of mine.entries()) x.set(inputs.subarray(i * pixels, (i + 1) * pixels), row * pixels);
  const y = tf.tensor1d(mine.map((i) => labels.data[i]!));
  return { x: tf.tensor2d(x, [mine.length, pixels]), y };
}

async function train(group: Group, seed: number): Promise<{ weights: Float32Array; losses: number[] }> {
  const dense = (units: number, options: object) =>
    tf.layers.dense({ units, kernelInitializer: tf.initializers.glorotUniform({ seed }), ...options });
  const model = tf.sequential({
    layers: [dense(32, { inputShape: [pixels], activation: 'relu' }), dense(10, { activation: 'softmax' })],
  });
  model.compile({ optimizer: tf.train.adam(0.01), loss: 'sparseCategoricalCrossentropy' });
  dataParallel(model, group); // the one line
  const { x, y } = share(group);
  const { history } = await model.fit(x, y, {
    batchSize: batch / group.size,
    epochs: 5,
    shuffle: false,
    verbose: 0,
  });
  const losses = Float32Array.from(history.loss as number[]); // per epoch, on this rank's samples
  group.allReduceSync(losses, { op: 'avg' });
  return { weights: flatten(model.getWeights()), losses: [...losses] };
}

tf.enableProdMode();
await tf.setBackend('cpu');
await using group = await init();
if (batch % group.size !== 0) throw new Error(`${group.size} ranks cannot share batches of ${batch} equally`);

const { weights, losses } = await train(group, group.rank); // different seeds; all ranks get rank 0's weights
const [most, least] = (['max', 'min'] as const).map((op) => {
  const all = weights.slice();
  group.allReduceSync(all, { op });
  return all;
});
if (!most!.every((weight, i) => weight === least![i])) throw new Error('ranks differ');
if (!(losses.at(-1)! < losses[0]! / 2)) throw new Error(`not learned: loss ${losses.join(', ')}`);

await using self = await group.split(group.rank); // a group of one, on every rank
if (group.rank === 0) {
  const alone = await train(self!, 0);
  const difference = weights.reduce((most, w, i) => Math.max(most, Math.abs(w - alone.weights[i]!)), 0);
  if (!(difference < 1e-6)) throw new Error(`off by ${difference}`);
  console.log(`loss ${losses.map((loss) => loss.toFixed(3)).join(' ')}`);
  console.log(`${group.size} ranks: the same bits on all, and the weights of one process to 1e-6`);
}
