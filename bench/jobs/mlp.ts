// A training job: the MLP 784-512-512-10 on images in memory, with a DistributedSampler and a DataLoader.
import { ArrayDataset, DataLoader, DistributedSampler } from '@ringwise/data';
import { crossEntropy, fromHost, manualSeed } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import type { Job } from './job.ts';

const pixels = 784;
const images = 60_000;

export function makeMlp(): Sequential {
  manualSeed(1);
  return new Sequential(
    new Linear(pixels, 512),
    new ReLU(),
    new Linear(512, 512),
    new ReLU(),
    new Linear(512, 10),
  );
}

/** Generates images of noise, each with a bright block whose place tells the class, and their labels. */
export function mlpData(): { readonly images: Uint8Array; readonly labels: Uint8Array } {
  const noise = new Uint8Array(images * pixels);
  const labels = new Uint8Array(images);
  let state = 1;
  for (let i = 0; i < noise.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    noise[i] = state >>> 24;
  }
  for (let i = 0; i < images; i++) {
    labels[i] = noise[i * pixels]! % 10;
    noise.fill(255, i * pixels + labels[i]! * 70, i * pixels + labels[i]! * 70 + 20);
  }
  return { images: noise, labels };
}

function load() {
  const { images, labels } = mlpData();
  const pixelsOfAll = new Float32Array(images.length);
  for (let i = 0; i < images.length; i++) pixelsOfAll[i] = images[i]! / 255;
  return new ArrayDataset({
    image: { data: pixelsOfAll, shape: [pixels] },
    label: { data: Int32Array.from(labels), shape: [] },
  });
}

let loaded: ReturnType<typeof load> | null = null;

export const mlp: Job = {
  model: makeMlp,
  optimizer: (parameters) => new SGD(parameters, { lr: 1e-3 }),
  *losses({ rank, ranks, batch }, forward) {
    loaded ??= load();
    const dataset = loaded;
    const sampler = new DistributedSampler(dataset.length, { replicas: ranks, rank });
    const loader = new DataLoader(dataset, { batchSize: batch, sampler, dropLast: true });
    for (let epoch = 0; ; epoch++) {
      sampler.setEpoch(epoch);
      for (const { image, label } of loader) {
        yield () => crossEntropy(forward(fromHost(image.data, image.shape)), fromHost(label.data));
      }
    }
  },
  batch: 32,
  unitsPerSample: 1,
  rateName: 'samplesPerSecond',
};
