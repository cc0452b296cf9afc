// Trains with one process per GPU, or on the CPU with one per core if there are no GPUs. With --nprocs above the number
// of GPUs, all ranks compute on the CPU. The script starts these processes itself, with spawn(), so it needs no
// launcher. It takes the arguments of PyTorch's multi-GPU tutorial and prints lines of the same form, [GPU r] for rank
// r also on the CPU, and at the end the loss of each epoch.
//
//   npx tsx examples/multigpu.ts TOTAL_EPOCHS SAVE_EVERY [--batch_size 32] [--nprocs 2] [--data DIR] [--samples 60000]
//
//   TOTAL_EPOCHS   number of epochs
//   SAVE_EVERY     saves checkpoint.safetensors every SAVE_EVERY epochs
//   --batch_size   samples in a batch of each rank [32]
//   --nprocs       number of ranks [the number of GPUs, or of CPU cores if there are none]
//   --data         folder with MNIST's files, or others in that format [generated digits]
//   --samples      how many digits to generate [60000]; ignored with --data
//
// With two epochs or more, the program fails unless the mean loss of the last epoch is below that of the first. 60,000
// samples on 2 ranks with batches of 32 take 938 steps per epoch.
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { type Group, init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, normalize } from '@ringwise/data';
import { loadMnist } from '@ringwise/data/idx';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { ddp } from '@ringwise/ddp';
import { reportMetrics, spawn } from '@ringwise/launch';
import { crossEntropy, cudaInfo, type Device, fromHost, pinArray, scope } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { saveSafetensors } from '@ringwise/tensor/safetensors';
import { readOptions, whole } from './options.ts';

interface Options {
  readonly totalEpochs: number;
  readonly saveEvery: number;
  readonly batchSize: number;
  readonly data?: string | undefined;
  readonly samples: number;
  /** True if each rank has its own GPU; if false, all ranks compute on the CPU. */
  readonly hasGpus: boolean;
}

async function loadTrainingSet({ data, samples }: Options) {
  const { images, labels } = data ? await loadMnist(data) : syntheticDigits({ count: samples });
  return new ArrayDataset({
    image: { data: normalize(images.data), shape: [784] },
    label: { data: Int32Array.from(labels.data), shape: [] },
  });
}

async function train(group: Group, device: Device, options: Options): Promise<number[]> {
  const net = new Sequential(
    new Linear(784, 512),
    new ReLU(),
    new Linear(512, 512),
    new ReLU(),
    new Linear(512, 10),
  ).to(device);
  const model = await ddp(net, { group });
  const optimizer = new SGD(net.parameters(), { lr: 1e-3 });
  const dataset = await loadTrainingSet(options);
  const sampler = new DistributedSampler(dataset.length, { replicas: group.size, rank: group.rank });
  const pinning = options.hasGpus ? { pinMemory: pinArray } : {};
  const loader = new DataLoader(dataset, { batchSize: options.batchSize, sampler, ...pinning });
  const means: number[] = [];
  for (let epoch = 0; epoch < options.totalEpochs; epoch++) {
    sampler.setEpoch(epoch);
    let step = 0;
    let sum = 0;
    for await (const { image, label } of loader) {
      if (step++ === 0)
        console.log(
          `[GPU${group.rank}] Epoch ${epoch} | Batchsize: ${image.shape[0]} | Steps: ${loader.length}`,
        );
      sum += scope(() => {
        const inputs = fromHost(image.data, image.shape).to(device, { nonBlocking: true });
        const targets = fromHost(label.data).to(device, { nonBlocking: true });
        const loss = crossEntropy(model.forward(inputs), targets);
        optimizer.zeroGrad();
        loss.backward();
        optimizer.step();
        const value = loss.item();
        reportMetrics({ loss: value, samples: label.shape[0]!, ddp: model.statistics() });
        return value;
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

/** Trains as rank `rank`: spawn() calls this in each process. Returns the mean loss of each epoch. */
export default async function main(rank: number, options: Options): Promise<number[]> {
  await using group = await init();
  // spawn() starts ranks on this host only, so rank r uses GPU r.
  return await train(group, options.hasGpus ? `cuda:${rank}` : 'cpu', options);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const gpus = cudaInfo().devices.length;
  const cores = String(gpus || availableParallelism());
  const flags = {
    batch_size: { type: 'string', default: '32' },
    nprocs: { type: 'string', default: cores },
    data: { type: 'string' },
    samples: { type: 'string', default: '60000' },
  } as const;
  const { words, ...values } = readOptions(import.meta.url, flags, ['TOTAL_EPOCHS', 'SAVE_EVERY']);
  const totalEpochs = whole('TOTAL_EPOCHS', words[0]!);
  const nprocs = whole('--nprocs', values.nprocs);
  const options: Options = {
    totalEpochs,
    saveEvery: whole('SAVE_EVERY', words[1]!),
    batchSize: whole('--batch_size', values.batch_size),
    data: values.data,
    samples: whole('--samples', values.samples),
    hasGpus: gpus >= nprocs,
  };
  const ranks = await spawn<number[]>(new URL(import.meta.url), { nprocs, args: [options] });
  // In each epoch every rank sees its own part of the data set, and all ranks together see all of it. So the means are
  // averaged over the ranks.
  const means = ranks[0]!.map((_, epoch) => ranks.reduce((sum, own) => sum + own[epoch]!, 0) / ranks.length);
  console.log(`loss ${means.map((mean) => mean.toFixed(4)).join(' → ')}`);
  if (totalEpochs > 1 && !(means.at(-1)! < means[0]!)) throw new Error('expected the loss to fall');
}
