// Functions that the ranks of device-sync-batch-norm.test.ts run: DDP and batch norm over all ranks on the rank's test
// device.
import { init } from '@ringwise/collectives';
import { assertInSync, convertSyncBatchNorm, type DdpOptions, ddp } from '@ringwise/ddp';
import {
  type CompiledStep,
  compile,
  crossEntropy,
  type DeviceName,
  fromHost,
  manualSeed,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { BatchNorm1d, Linear, Module, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { testDeviceOf, useTestDevice } from '@ringwise/testing';

const [features, width, classes, samplesPerRank] = [6, 8, 3, 4];

class Net extends Module {
  readonly body = new Sequential(
    new Linear(features, width, { bias: false }), // the batch norm would subtract a bias again
    new BatchNorm1d(width),
    new ReLU(),
    new Linear(width, width, { bias: false }),
    new BatchNorm1d(width),
    new ReLU(),
  );
  readonly first = new Linear(width, classes);
  readonly second = new Linear(width, classes);

  forward(x: Tensor, usesSecond = true): Tensor {
    const hidden = this.body.forward(x);
    const out = this.first.forward(hidden);
    return usesSecond ? out.add(this.second.forward(hidden)) : out;
  }
}

function netOn(device: DeviceName, seed: number): Net {
  manualSeed(seed);
  return new Net().to(device) as Net;
}

/** Returns the inputs and labels of `count` samples of a step, beginning at sample `from`. */
function batchOf(step: number, from: number, count: number, device: DeviceName): [Tensor, Tensor] {
  const first = 8 * (step % 16) + from;
  const values = Float32Array.from({ length: count * features }, (_, i) =>
    Math.cos(0.37 * (first * features + i)),
  );
  const labels = Int32Array.from({ length: count }, (_, i) => (first + i) % classes);
  return [fromHost(values, [count, features]).to(device), fromHost(labels).to(device)];
}

const stateOf = (net: Module): Float32Array =>
  Float32Array.from(
    [...net.parameters(), ...net.buffers()].flatMap((t) => Array.from(t.dataSync() as Float32Array, Number)),
  );

/** Trains on the CPU in this process, with the batches of `size` ranks together. Returns parameters and buffers. */
export function alone(steps: number, size: number): Float32Array {
  const net = netOn('cpu', 0);
  const optimizer = new SGD(net.parameters(), { lr: 0.02 });
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => {
      const [x, y] = batchOf(step, 0, size * samplesPerRank, 'cpu');
      crossEntropy(net.forward(x), y).backward();
    });
    optimizer.step();
  }
  return stateOf(net);
}

/**
 * Trains, eagerly or in a captured step, with `counts[rank]` samples in each step. Returns parameters and buffers,
 * whether the step was replayed, and the verbs that the flight recorder of the group has.
 */
export async function train(rank: number, steps: number, counts: readonly number[], isCaptured: boolean) {
  useTestDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 60_000 });
  const device: DeviceName = `cuda:${testDeviceOf(rank)}`;
  const net = netOn(device, rank);
  await convertSyncBatchNorm(net, group);
  using model = await ddp(net, { group, bucketBytes: 64 });
  const optimizer = new SGD(net.parameters(), { lr: 0.02 });
  const plain = (x: Tensor, y: Tensor): void => {
    optimizer.zeroGrad();
    crossEntropy(model.forward(x), y).backward();
    optimizer.step();
  };
  const step = isCaptured ? compile(plain) : plain;
  const from = counts.slice(0, rank).reduce((sum, count) => sum + count, 0);
  for (let i = 0; i < steps; i++) scope(() => step(...batchOf(i, from, counts[rank]!, device)));
  const isReplayed = isCaptured && (step as CompiledStep<[Tensor, Tensor], void>).isCaptured;
  await assertInSync(net, group);
  const verbs = [...new Set(group.flightRecord().map(({ verb }) => verb))].sort();
  await group.close();
  return { state: stateOf(net), isReplayed, verbs };
}

/** Trains with a second head that rank 1 uses only in some steps. Returns parameters and buffers. */
export async function trainUnused(
  rank: number,
  steps: number,
  unused: NonNullable<DdpOptions['unused']>,
  isWeighted: boolean,
) {
  useTestDevice();
  const group = await init({ backend: 'nccl', timeoutMs: 60_000 });
  const device: DeviceName = `cuda:${testDeviceOf(rank)}`;
  const net = netOn(device, rank);
  await convertSyncBatchNorm(net, group);
  using model = await ddp(net, { group, bucketBytes: 64, unused });
  const optimizer = new SGD(net.parameters(), { lr: 0.02 });
  for (let i = 0; i < steps; i++) {
    optimizer.zeroGrad();
    scope(() => {
      const [x, y] = batchOf(i, rank * samplesPerRank, samplesPerRank, device);
      const loss = crossEntropy(model.forward(x, rank === 0 || i % 3 === 0), y);
      if (isWeighted) model.backward(loss, { weight: samplesPerRank });
      else loss.backward();
    });
    optimizer.step();
  }
  await assertInSync(net, group);
  await group.close();
  return stateOf(net);
}
