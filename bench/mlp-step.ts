// Measures a training step of the MLP 784-512-512-10 at batch 32 in one process, without compile().
//
//   npx tsx bench/mlp-step.ts [--steps 500]
//
// Prints one JSON line: the median step and its parts in microseconds, and samples per second. The labels follow from
// the images, so the loss must fall; if it does not, the line says ok: false and the exit code is 1.
import { parseArgs } from 'node:util';
import { crossEntropy, fromHost, generator } from '@ringwise/tensor';
import { SGD } from '@ringwise/tensor/optim';
import { makeMlp } from './jobs/mlp.ts';
import { measureTraining } from './training-step.ts';

const { values } = parseArgs({ options: { steps: { type: 'string', default: '500' } } });
const steps = Number(values.steps);
const batch = 32;
const pixels = 784;
const batches = 20;

const images = new Float32Array(batches * batch * pixels);
generator(2).uniform(images);
const labels = new Int32Array(batches * batch);
for (let i = 0; i < labels.length; i++) {
  labels[i] = i % 10;
  // A bright block whose place tells the class.
  images.fill(1, i * pixels + (i % 10) * 70, i * pixels + (i % 10) * 70 + 70);
}

const model = makeMlp();
const optimizer = new SGD(model.parameters(), { lr: 0.01, momentum: 0.9 });

measureTraining({
  bench: 'mlp-step',
  about: { batch },
  perStep: { samplesPerSecond: batch },
  steps,
  optimizer,
  loss: (i) => {
    const at = i % batches;
    const x = fromHost(images.subarray(at * batch * pixels, (at + 1) * batch * pixels), [batch, pixels]);
    const y = fromHost(labels.subarray(at * batch, (at + 1) * batch));
    return crossEntropy(model.forward(x), y);
  },
});
