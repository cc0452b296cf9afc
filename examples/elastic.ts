// Trains a model and survives the loss of ranks and hosts: the launcher starts all ranks again, and they continue from
// the last snapshot.
//
//   npx ringwise run --nproc-per-node 2 --max-restarts 3 examples/elastic.ts --snapshot toy.safetensors
//   npx ringwise run --nnodes 2 --nproc-per-node 2 --rdzv-id 100 --rdzv-backend c10d \
//       --rdzv-endpoint $MASTER_ADDR:29400 --max-restarts 3 examples/elastic.ts      the same command on both hosts
//
// On two hosts, set RINGWISE_SECRET to the same text on both, and --snapshot to a file that both hosts share.
// --epochs 20 --pause-ms 0: how many epochs, and a pause after each.
// To see a restart, kill a rank while it trains. Claim: the loss falls. If the job restarts with as many ranks as
// before, the final loss is the same as without the kill.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Group, init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler } from '@ringwise/data';
import { ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { fromHost, manualSeed, mseLoss, scope } from '@ringwise/tensor';
import { Linear, type Module, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { loadSafetensors, safetensorsMetadata, saveSafetensors } from '@ringwise/tensor/safetensors';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, {
  snapshot: { type: 'string', default: 'snapshot.safetensors' },
  epochs: { type: 'string', default: '20' },
  'pause-ms': { type: 'string', default: '0' }, // pause after each epoch, so that there is time to kill a rank
});
const epochs = whole('--epochs', args.epochs);
const pauseMs = whole('--pause-ms', args['pause-ms'], 0);

/**
 * Loads the snapshot into `net` on rank 0 and returns the first epoch to train, 0 if there is no snapshot or it cannot
 * be read. The other ranks get rank 0's weights later, from ddp().
 */
async function resume(net: Module, group: Group): Promise<number> {
  const start = new Int32Array(1);
  if (group.rank === 0) {
    const metadata = await safetensorsMetadata(args.snapshot).catch(() => null);
    if (metadata !== null) {
      net.loadStateDict(await loadSafetensors(args.snapshot));
      start[0] = Number(metadata.epoch) + 1;
    }
  }
  await group.broadcast(start, { root: 0 });
  return start[0]!;
}

/** Makes 240 points x that look random, and targets y that are a fixed linear map of x. */
function toyData() {
  const noise = (index: number) => Math.sin(index * 12.9898) % 1;
  const x = Float32Array.from({ length: 240 * 10 }, (_, index) => noise(index + 1));
  const y = Float32Array.from({ length: 240 * 5 }, (_, index) => {
    const row = Math.floor(index / 5) * 10;
    return x[row + (index % 5)]! - x[row + (index % 5) + 5]!;
  });
  return new ArrayDataset({ x: { data: x, shape: [10] }, y: { data: y, shape: [5] } });
}

await using group = await init();
manualSeed(1);
const net = new Sequential(new Linear(10, 10), new ReLU(), new Linear(10, 5));
const first = await resume(net, group);
const model = await ddp(net, { group });
const optimizer = new SGD(net.parameters(), { lr: 1e-1 });
const data = toyData();
const sampler = new DistributedSampler(data.length, { replicas: group.size, rank: group.rank });
const loader = new DataLoader(data, { batchSize: 20, sampler });
const log = group.rank === 0 ? console.log : () => {};
log(first === 0 ? 'starting from scratch' : `resuming from epoch ${first}`);
console.log(`rank ${group.rank} of ${group.size} runs as pid ${process.pid}`);
await group.barrier();

const losses: number[] = [];
for (let epoch = first; epoch < epochs; epoch++) {
  sampler.setEpoch(epoch);
  const sum = new Float64Array(1);
  for await (const { x, y } of loader) {
    sum[0]! += scope(() => {
      const loss = mseLoss(model.forward(fromHost(x.data, x.shape)), fromHost(y.data, y.shape));
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      reportMetrics({ loss: loss.item(), samples: x.shape[0]!, ddp: model.statistics() });
      return loss.item();
    });
  }
  await group.allReduce(sum, { op: 'avg' });
  losses.push(sum[0]! / loader.length);
  if (group.rank === 0) await saveSafetensors(args.snapshot, net.stateDict(), { epoch: `${epoch}` });
  log(`epoch ${epoch} of ${epochs} on ${group.size} ranks: loss ${losses.at(-1)}`);
  await sleep(pauseMs);
}
if (losses.length > 1 && !(losses.at(-1)! < losses[0]!)) throw new Error(`the loss did not fall: ${losses}`);
