// Functions that the ranks of device-snapshot.test.ts run: a training on devices that saves and resumes, and clipping.
import { type BufferLike, init } from '@ringwise/collectives';
import { clipShardedGradients, ddp, loadSnapshot, type SnapshotTensor, saveSnapshot } from '@ringwise/ddp';
import {
  crossEntropy,
  type DeviceName,
  fromHost,
  type HostArray,
  manualSeed,
  scope,
  type Tensor,
  tensor,
} from '@ringwise/tensor';
import { BatchNorm1d, Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { AdamW, type OptimizerState } from '@ringwise/tensor/optim';
import { testDeviceOf, useTestDevice } from '@ringwise/testing';

const features = 12;
const batch = 6;

interface Saved {
  readonly model: Record<string, Tensor>;
  readonly optimizer: OptimizerState;
  readonly step: number;
}

/** Trains until step `stop` and saves to `file`. Resumes from the snapshot `from`, if given. */
export async function train(rank: number, backend: string, stop: number, file: string, from: string | null) {
  useTestDevice();
  await using group = await init({ backend });
  const device: DeviceName = `cuda:${testDeviceOf(rank)}`;
  manualSeed(rank);
  const net = new Sequential(new Linear(features, 16), new BatchNorm1d(16), new ReLU(), new Linear(16, 3));
  net.to(device);
  const optimizer = new AdamW(net.parameters(), { lr: 0.01 });
  const places: string[] = [];
  const revive = ({ data, dtype, shape }: SnapshotTensor): Tensor => {
    const made = fromHost(data as HostArray, [...shape], { dtype: dtype as 'float32' }).to(device);
    places.push(made.device);
    return made;
  };
  let step = 0;
  if (from !== null) {
    const saved = (await loadSnapshot<Saved>(from, group, { tensor: revive }))!;
    net.loadStateDict(saved.model);
    optimizer.loadStateDict(saved.optimizer);
    step = saved.step;
  }
  using model = await ddp(net, { group, bucketBytes: 1024 });
  for (; step < stop; step++) {
    const at = (step * group.size + rank) * batch;
    const x = Float32Array.from({ length: batch * features }, (_, i) => Math.cos(0.37 * (at * features + i)));
    const y = Int32Array.from({ length: batch }, (_, i) => (at + i) % 3);
    optimizer.zeroGrad();
    scope(() => {
      const scores = model.forward(fromHost(x, [batch, features]).to(device));
      crossEntropy(scores, fromHost(y).to(device)).backward();
    });
    optimizer.step();
  }
  const state: Saved = { model: net.stateDict() as Saved['model'], optimizer: optimizer.stateDict(), step };
  await saveSnapshot(file, state, group);
  const bits = net.parameters().map((parameter) => parameter.dataSync() as Float32Array);
  return { bits, places: [...new Set(places)] };
}

/** Clips gradients that differ on each rank and lie on its device. */
export async function clip(rank: number, backend: string, maxNorm: number) {
  useTestDevice();
  await using group = await init({ backend });
  const device: DeviceName = `cuda:${testDeviceOf(rank)}`;
  const shard = [
    [3 + rank, 0],
    [[1], [2 * rank]],
  ].map((values) => tensor(values, { device }));
  const norm = await clipShardedGradients(shard as unknown as BufferLike[], maxNorm, group);
  return { norm, shard: shard.map((gradient) => [...(gradient.dataSync() as Float32Array)]) };
}
