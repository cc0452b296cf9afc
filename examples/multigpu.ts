// One process per device, started by this script itself: no launcher. The trainer of the well-known multi-GPU
// tutorial, with its arguments and its lines.
//
//   npx tsx examples/multigpu.ts TOTAL_EPOCHS SAVE_EVERY [--batch_size 32] [--nprocs 2] [--data DIR] [--samples 60000]
//
// Claim: 60,000 samples on 2 ranks with batches of 32 are 938 steps an epoch, and the loss falls.
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { type Group, init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { loadMnist } from '@ringwise/data/idx';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { ddp } from '@ringwise/ddp';
import { spawn } from '@ringwise/launch';
import { crossEntropy, fromHost, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { saveSafetensors } from '@ringwise/tensor/safetensors';

interface Options {
  readonly totalEpochs: number;
  readonly saveEvery: number;
  readonly batchSize: number;
  readonly data?: string | undefined;
  readonly samples: number;
}

async function loadTrainingSet({ data, samples }: Options) {
  const { images, labels } = data ? await loadMnist(data) : syntheticDigits({ count: samples });
  return new ArrayDataset({
    image: { data: normalize(images.data), shape: [784] },
    label: { data: Int32Array.from(labels.data), shape: [] },
  });
}

async function train(group: Group, options: Options): Promise<number[]> {
  const net = new Sequential(
    new Linear(784, 512),
    new ReLU(),
    new Linear(512, 512),
    new ReLU(),
    new Linear(512, 10),
  );
  const model = await ddp(net, { group });
  const optimizer = new SGD(net.parameters(), { lr: 1e-3 });
  const dataset = await loadTrainingSet(options);
  const sampler = new DistributedSampler(dataset.length, { replicas: group.size, rank: group.rank });
  const loader = new DataLoader(dataset, { batchSize: options.batchSize, sampler });
  const means: number[] = [];
  for (let epoch = 0; epoch < options.totalEpochs; epoch++) {
    console.log(
      `[GPU${group.rank}] Epoch ${epoch} | Batchsize: ${options.batchSize} | Steps: ${loader.length}`,
    );
    sampler.setEpoch(epoch);
    let sum = 0;
    for await (const { image, label } of loader) {
      sum += scope(() => {
        const loss = crossEntropy(model.forward(fromHost(image.data, image.shape)), fromHost(label.data));
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
        return loss.item();
      });
    }
    means.push(sum / loader.length);
    if (group.rank === 0 && epoch % options.saveEvery === 0) {
      await saveSafetensors('checkpoint.safetensors', net.stateDict());
      console.log(`Epoch ${epoch} | Training checkpoint saved at checkpoint.safetensors`);
    }
  }
  return means;
}

/** What each rank runs. */
export default async function main(_rank: number, options: Options): Promise<number[]> {
  await using group = await init();
  return await train(group, options);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      batch_size: { type: 'string', default: '32' },
      nprocs: { type: 'string', default: String(availableParallelism()) },
      data: { type: 'string' },
      samples: { type: 'string', default: '60000' },
    },
  });
  const [totalEpochs, saveEvery] = positionals.map(Number);
  if (!totalEpochs || !saveEvery)
    throw new Error('usage: multigpu.ts TOTAL_EPOCHS SAVE_EVERY [--batch_size N]');
  const { data, samples, batch_size: batchSize, nprocs } = values;
  const options: Options = {
    totalEpochs,
    saveEvery,
    batchSize: Number(batchSize),
    data,
    samples: Number(samples),
  };
  const ranks = await spawn<number[]>(new URL(import.meta.url), {
    nprocs: Number(nprocs),
    args: [options],
  });
  // A rank sees other samples in each epoch; all ranks together see the same.
  const means = ranks[0]!.map((_, epoch) => ranks.reduce((sum, own) => sum + own[epoch]!, 0) / ranks.length);
  console.log(`loss ${means.map((mean) => mean.toFixed(4)).join(' → ')}`);
  if (totalEpochs > 1 && !(means.at(-1)! < means[0]!)) throw new Error('expected the loss to fall');
}
