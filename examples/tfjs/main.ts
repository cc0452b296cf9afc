// Trains a TensorFlow.js model with its own model.fit(), which one line makes data-parallel.
//
//   npx ringwise run --nproc-per-node 2 examples/tfjs/main.ts
//
// Claim: all ranks end with the same bits, and to within 1e-5 with the weights of one process that trains on the joined
// batches.
import { type Group, init } from '@ringwise/collectives';
import { normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { reportMetrics } from '@ringwise/launch';
import { dataParallel, shard } from '@ringwise/tfjs';
import * as tf from '@tensorflow/tfjs';
import { readOptions } from '../options.ts';

readOptions(import.meta.url, {});
tf.enableProdMode();
await tf.setBackend('cpu');

const samples = 384;
const pixels = 14 * 14;
const batch = 24; // samples per step, of all ranks together
const { images, labels } = syntheticDigits({ count: samples, size: 14 });
const x = tf.tensor2d(normalize(images.data), [samples, pixels]);
const y = tf.tensor1d(Float32Array.from(labels.data));

async function train(group: Group, seed: number): Promise<{ weights: number[]; losses: number[] }> {
  const dense = (units: number, options: object) =>
    tf.layers.dense({ units, kernelInitializer: tf.initializers.glorotUniform({ seed }), ...options });
  const model = tf.sequential({
    layers: [dense(32, { inputShape: [pixels], activation: 'relu' }), dense(10, { activation: 'softmax' })],
  });
  model.compile({ optimizer: tf.train.adam(0.01), loss: 'sparseCategoricalCrossentropy' });
  const parallel = await dataParallel(model, { group }); // the one line
  const own = shard({ x, y }, group);
  const { history } = await model.fit(own.x, own.y, {
    batchSize: batch / group.size,
    epochs: 5,
    shuffle: false,
    verbose: 0,
    callbacks: {
      onBatchEnd: (_, logs) => reportMetrics({ loss: logs!.loss as number, samples: batch / group.size }),
    },
  });
  await parallel.assertInSync(); // all ranks have the same bits
  const weights = model.getWeights().flatMap((weight) => [...weight.dataSync()]);
  return { weights, losses: history.loss as number[] };
}

await using group = await init();
if (batch % group.size !== 0) throw new Error(`${group.size} ranks cannot share batches of ${batch} equally`);

const { weights, losses } = await train(group, group.rank); // different seeds; all ranks get rank 0's weights
if (!(losses.at(-1)! < losses[0]! / 2)) throw new Error(`not learned: loss ${losses.join(', ')}`);

await using self = await group.split(group.rank); // a group of one, on every rank
if (group.rank === 0) {
  const alone = await train(self!, 0);
  const difference = weights.reduce((most, w, i) => Math.max(most, Math.abs(w - alone.weights[i]!)), 0);
  if (!(difference < 1e-5)) throw new Error(`off by ${difference}`);
  console.log(`loss ${losses.map((loss) => loss.toFixed(3)).join(' ')}`);
  console.log(`${group.size} ranks: the same bits on all, and the weights of one process to 1e-5`);
}
