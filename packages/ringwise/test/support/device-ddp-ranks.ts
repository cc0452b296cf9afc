// Functions that the ranks of device-ddp.test.ts run: trainings whose parameters and gradients lie on CUDA devices, one
// device for each rank or one GPU for all. The functions named …Alone train the same in one process on the CPU, for
// comparison.
import { createRequire } from 'node:module';
import { bufferSymbol, type CollectiveError, type Group, init } from '@ringwise/collectives';
import {
  assertInSync,
  compressHook,
  convertSyncBatchNorm,
  type DdpError,
  type DdpOptions,
  type DistributedDataParallel,
  ddp,
  ZeroRedundancyOptimizer,
} from '@ringwise/ddp';
import { TcpStore } from '@ringwise/store';
import {
  arange,
  CudaStream,
  compile,
  crossEntropy,
  currentStream,
  type DeviceName,
  fromHost,
  manualSeed,
  matmul,
  ones,
  scope,
  type Tensor,
  TensorError,
  withStream,
} from '@ringwise/tensor';
import {
  BatchNorm2d,
  Conv2d,
  Embedding,
  Flatten,
  LayerNorm,
  Linear,
  Module,
  ReLU,
  Sequential,
  TransformerBlock,
} from '@ringwise/tensor/nn';
import { AdamW, SGD } from '@ringwise/tensor/optim';
import { deviceMemoryAddon, isTestGpu, testDeviceOf, useTestDevice } from '@ringwise/testing';

const steps = 6;
const features = 20;
const classes = 4;
/** Samples of each rank in a step, where all ranks have the same number. */
const share = 4;
/** Samples of each rank in a step, where the numbers differ. */
export const uneven = [3, 5];
/** Steps of each rank in the training with `join`, in which the ranks run out of data at different times. */
export const lengths = [6, 4];

/** An MLP with two heads, of which the second is not always used. */
class Mlp extends Module {
  readonly body = new Sequential(new Linear(features, 24), new ReLU(), new Linear(24, 24), new ReLU());
  readonly first = new Linear(24, classes);
  readonly second = new Linear(24, classes);

  forward(x: Tensor, isSecondUsed = true): Tensor {
    const hidden = this.body.forward(x);
    const out = this.first.forward(hidden);
    return isSecondUsed ? out.add(this.second.forward(hidden)) : out;
  }
}

const [time, width, vocab] = [6, 8, 9] as const;

class Gpt extends Module {
  readonly tokens = new Embedding(vocab, width);
  readonly places = new Embedding(time, width);
  readonly blocks = [new TransformerBlock(width, 2, { causal: true })];
  readonly norm = new LayerNorm(width);

  forward(x: Tensor): Tensor {
    const places = arange(0, time, 1, { dtype: 'int64', device: x.device });
    let hidden = this.tokens.forward(x).add(this.places.forward(places));
    for (const block of this.blocks) hidden = block.forward(hidden);
    return matmul(this.norm.forward(hidden), this.tokens.weight.t()).reshape([-1, vocab]);
  }
}

const made = <M extends Module>(seed: number, device: DeviceName, make: () => M): M => {
  manualSeed(seed);
  const net = make();
  net.to(device);
  return net;
};

const makeMlp = (): Mlp => new Mlp();
const makeGpt = (): Gpt => new Gpt();
const makeCnn = (): Sequential =>
  new Sequential(
    new Conv2d(1, 3, 3, { bias: false }), // the batch norm would cancel a bias
    new BatchNorm2d(3),
    new ReLU(),
    new Flatten(),
    new Linear(3 * 4 * 4, classes),
  );

const waves = (from: number, count: number, each: number): Float32Array =>
  Float32Array.from({ length: count * each }, (_, i) => Math.cos(0.37 * (from * each + i)));
const labels = (from: number, count: number, device: DeviceName): Tensor =>
  fromHost(
    Int32Array.from({ length: count }, (_, i) => (from + i) % classes),
    [count],
  ).to(device);

function mlpLoss(forward: (x: Tensor) => Tensor, from: number, count: number, device: DeviceName): Tensor {
  const x = fromHost(waves(from, count, features), [count, features]).to(device);
  return crossEntropy(forward(x), labels(from, count, device));
}

function cnnLoss(forward: (x: Tensor) => Tensor, from: number, count: number, device: DeviceName): Tensor {
  const x = fromHost(waves(from, count, 36), [count, 1, 6, 6]).to(device);
  return crossEntropy(forward(x), labels(from, count, device));
}

function gptLoss(forward: (x: Tensor) => Tensor, from: number, count: number, device: DeviceName): Tensor {
  const token = (window: number, t: number) => ((from + window) * 5 + t * t + (t >> 1)) % vocab;
  const at = (shift: number) =>
    Int32Array.from({ length: count * time }, (_, i) => token(Math.floor(i / time), (i % time) + shift));
  const scores = forward(fromHost(at(0), [count, time]).to(device));
  return crossEntropy(scores, fromHost(at(1)).to(device));
}

/** Returns SGD with weight decay, which changes a parameter whose gradient is zero but not one that is skipped. */
const sgd = (net: Module): SGD => new SGD(net.parameters(), { lr: 0.05, weightDecay: 0.1 });
// The gradient of a key's bias is zero except for rounding, and AdamW divides it by its own size. The large eps keeps
// such steps small.
const adamw = (parameters: Tensor[]): AdamW =>
  new AdamW(parameters, { lr: 0.01, eps: 1e-3, weightDecay: 0.1 });

/** Returns the parameters and the running statistics. */
const stateOf = (net: Module): Float32Array =>
  Float32Array.from(
    [...net.parameters(), ...net.buffers()].flatMap((t) => Array.from(t.dataSync() as Float32Array, Number)),
  );

/**
 * Tells whether a rank uses the second head in a step: all ranks in steps 0, 3, …, rank 1 alone in steps 1, 4, …, and
 * no rank in steps 2, 5, …
 */
const isSecondUsed = (step: number, rank: number): boolean =>
  step % 3 === 0 || (step % 3 === 1 && rank === 1);

/** A way to train the MLP: one step of a rank with DDP, and the same step in one process. */
interface Way {
  /** Runs the step on a stream other than the device's main stream, on which DDP makes the buckets. */
  readonly isAside?: boolean;
  readonly options?: Partial<DdpOptions>;
  readonly step: (
    model: DistributedDataParallel<Mlp>,
    step: number,
    rank: number,
    device: DeviceName,
  ) => void;
  /** Computes the gradients for the data of all ranks in this process. */
  readonly together: (net: Mlp, step: number, size: number) => void;
}

const joined = (net: Mlp, step: number, size: number): void =>
  mlpLoss((x) => net.forward(x), 30 * step, size * share, 'cpu').backward();
const plain: Way = {
  step: (model, step, rank, device) =>
    mlpLoss(model.forward, 30 * step + rank * share, share, device).backward(),
  together: joined,
};

const ways: Readonly<Record<string, Way>> = {
  plain,
  'on a stream of its own': { ...plain, isAside: true },
  'buckets laid out anew': { ...plain, options: { rebuild: true } },
  'a static graph': { ...plain, options: { staticGraph: true } },
  noSync: {
    step: (model, step, rank, device) => {
      model.noSync(() => mlpLoss(model.forward, 30 * step + rank * share, share, device).backward());
      mlpLoss(model.forward, 30 * step + 15 + rank * share, share, device).backward();
    },
    together: (net, step, size) => {
      joined(net, step, size);
      mlpLoss((x) => net.forward(x), 30 * step + 15, size * share, 'cpu').backward();
    },
  },
  weights: {
    step: (model, step, rank, device) => {
      const from = 30 * step + (rank === 0 ? 0 : uneven[0]!);
      const weight = uneven[rank]!;
      model.backward(mlpLoss(model.forward, from, weight, device), { weight });
    },
    together: (net, step, size) => {
      const count = size === 1 ? uneven[0]! : uneven[0]! + uneven[1]!;
      mlpLoss((x) => net.forward(x), 30 * step, count, 'cpu').backward();
    },
  },
  'unused parameters, skipped': {
    options: { unused: 'skip' },
    step: (model, step, rank, device) => {
      const forward = (x: Tensor) => model.forward(x, isSecondUsed(step, rank));
      mlpLoss(forward, 30 * step + rank * share, share, device).backward();
    },
    together: (net, step, size) => {
      for (let rank = 0; rank < size; rank++) {
        const forward = (x: Tensor) => net.forward(x, isSecondUsed(step, rank));
        const loss = mlpLoss(forward, 30 * step + rank * share, share, 'cpu');
        loss.mul(1 / size).backward();
      }
    },
  },
};

/** Trains the MLP on `size` ranks' data in this process. Returns the state after each way of training. */
export function mlpAlone(size: number): Record<string, Float32Array> {
  const trained = Object.entries(ways).map(([name, { together }]) => {
    const net = made(0, 'cpu', makeMlp);
    const optimizer = sgd(net);
    for (let step = 0; step < steps; step++) {
      optimizer.zeroGrad();
      scope(() => together(net, step, size));
      optimizer.step();
    }
    return [name, stateOf(net)] as const;
  });
  const net = made(0, 'cpu', makeMlp);
  const optimizer = sgd(net);
  for (let step = 0; step < Math.max(...lengths.slice(0, size)); step++) {
    optimizer.zeroGrad();
    const live = lengths.slice(0, size).flatMap((length, rank) => (step < length ? [rank] : []));
    for (const rank of live) {
      scope(() => {
        const loss = mlpLoss((x) => net.forward(x), 30 * step + rank * share, share, 'cpu');
        loss.mul(1 / live.length).backward();
      });
    }
    optimizer.step();
  }
  return { ...Object.fromEntries(trained), join: stateOf(net) };
}

/** Joins the process group and returns it with this rank's device. */
async function begin(rank: number, backend: string): Promise<[Group, DeviceName]> {
  useTestDevice();
  return [await init(backend === 'any' ? {} : { backend }), `cuda:${testDeviceOf(rank)}`];
}

/** Trains the MLP in each way, with small buckets. Returns the states by way; the last is `join`. */
export async function trainMlp(rank: number, backend: string): Promise<Record<string, Float32Array>> {
  const [group, device] = await begin(rank, backend);
  const trained: Record<string, Float32Array> = {};
  for (const [name, way] of Object.entries(ways)) {
    const net = made(rank, device, makeMlp);
    using model = await ddp(net, { group, bucketBytes: 1024, ...way.options });
    const optimizer = sgd(net);
    const main = currentStream(device);
    const stream = way.isAside ? new CudaStream(device) : main;
    stream.wait(main);
    withStream(stream, () => {
      for (let step = 0; step < steps; step++) {
        optimizer.zeroGrad();
        scope(() => way.step(model, step, rank, device));
        optimizer.step();
      }
    });
    main.wait(stream);
    await assertInSync(net, group);
    trained[name] = stateOf(net);
  }
  const net = made(rank, device, makeMlp);
  using model = await ddp(net, { group, bucketBytes: 1024 });
  const optimizer = sgd(net);
  await model.join(() => {
    for (let step = 0; step < lengths[rank]!; step++) {
      optimizer.zeroGrad();
      scope(() => plain.step(model, step, rank, device));
      optimizer.step();
    }
  });
  trained.join = stateOf(net);
  await group.close();
  return trained;
}

/** Trains a GPT with tied weights on `size` ranks' data in this process. */
export function gptAlone(size: number): Float32Array {
  const net = made(0, 'cpu', makeGpt);
  const optimizer = adamw(net.parameters());
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => gptLoss((x) => net.forward(x), step, 2 * size, 'cpu').backward());
    optimizer.step();
  }
  return stateOf(net);
}

/**
 * Trains the GPT with AdamW on each rank, then with AdamW's state sharded over the ranks. Returns the parameters after
 * both, and of the sharded state the devices and the size.
 */
export async function trainGpt(rank: number, backend: string) {
  const [group, device] = await begin(rank, backend);
  const train = async (isSharded: boolean) => {
    const net = made(rank, device, makeGpt);
    using model = await ddp(net, { group, bucketBytes: 1024 });
    const optimizer = isSharded
      ? new ZeroRedundancyOptimizer(net.parameters(), group, adamw)
      : adamw(net.parameters());
    for (let step = 0; step < steps; step++) {
      net.zeroGrad();
      scope(() => gptLoss(model.forward, step + 2 * rank, 2, device).backward());
      optimizer.step();
    }
    await assertInSync(net, group);
    return { net, optimizer };
  };
  const { net } = await train(false);
  const { net: sharded, optimizer } = await train(true);
  const zero = optimizer as ZeroRedundancyOptimizer<Tensor, AdamW>;
  const remembered = Object.values(zero.local!.stateDict().tensors);
  await zero.consolidateStateDict();
  const state = rank === 0 ? zero.stateDict() : null;
  const elements = net.parameters().reduce((sum, { count }) => sum + count, 0);
  const bytes = Object.values(state?.tensors ?? {}).reduce((sum, tensor) => sum + tensor.data.byteLength, 0);
  await group.close();
  return {
    plain: stateOf(net),
    zero: stateOf(sharded),
    devices: [...new Set(remembered.map((tensor) => tensor.device))],
    /** Fraction of AdamW's state for all parameters that this rank's shard holds. */
    remembered: remembered.reduce((sum, { count }) => sum + count, 0) / (2 * elements),
    /** The same fraction of the consolidated state, which rank 0 has; null on other ranks. */
    consolidated: state && bytes / (8 * elements),
  };
}

/** Trains the CNN on `count` samples in each step in this process. */
export function cnnAlone(count: number): Float32Array {
  const net = made(0, 'cpu', makeCnn);
  const optimizer = sgd(net);
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => cnnLoss((x) => net.forward(x), 20 * step, count, 'cpu').backward());
    optimizer.step();
  }
  return stateOf(net);
}

/** Trains the CNN with a batch norm over the batches of all ranks. Rank r has `counts[r]` samples in each step. */
export async function trainCnn(rank: number, backend: string, counts: readonly number[]) {
  const [group, device] = await begin(rank, backend);
  const net = made(rank, device, makeCnn);
  await convertSyncBatchNorm(net, group);
  using model = await ddp(net, { group, bucketBytes: 64 });
  const optimizer = sgd(net);
  const before = counts.slice(0, rank).reduce((sum, count) => sum + count, 0);
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    const weight = counts[rank]!;
    scope(() => model.backward(cnnLoss(model.forward, 20 * step + before, weight, device), { weight }));
    optimizer.step();
  }
  await assertInSync(net, group);
  await group.close();
  return stateOf(net);
}

/** Counters of the software NCCL in this process, from native/test/software_gpu/memory_addon.cc. */
interface Counters {
  readonly registrations: () => [number, number];
  readonly shareable: () => number;
  /** Returns the number of groups of NCCL calls so far. */
  readonly batches: () => number;
}
const counters = (): Counters => createRequire(import.meta.url)(deviceMemoryAddon) as Counters;

/** Returns how many buffers are registered with the software NCCL, and how many registrations NVLink can use. */
function counted(): { readonly registered: number; readonly shareable: number } {
  if (isTestGpu) return { registered: 0, shareable: 0 };
  const { registrations, shareable } = counters();
  return { registered: registrations()[1], shareable: shareable() };
}

/** Counts NCCL's groups of calls in each step of a model with a batch norm, and the buckets and buffers it sends. */
export async function callsOfSteps(rank: number, backend: string) {
  const [group, device] = await begin(rank, backend);
  const net = made(rank, device, makeCnn);
  using model = await ddp(net, { group });
  const { batches } = counters();
  const calls: number[] = [];
  for (let step = 0; step < 3; step++) {
    const before = batches();
    scope(() => cnnLoss(model.forward, 0, share, device).backward());
    await group.barrier();
    calls.push(batches() - before);
  }
  await group.close();
  return { buckets: model.plan.length, buffers: net.buffers().length, calls };
}

/**
 * Returns the devices of the gradients, and for each bucket the number of start addresses that its gradients imply,
 * which is 1 if the gradients lie in the bucket. `registered` counts NCCL's registrations before and after close().
 */
export async function whereGradients(rank: number, backend: string) {
  const [group, device] = await begin(rank, backend);
  const net = made(rank, device, makeMlp);
  using model = await ddp(net, { group, bucketBytes: 1024 });
  scope(() => mlpLoss(model.forward, 0, share, device).backward());
  const gradients = net.parameters().map(({ grad }) => grad!);
  const devices = [...new Set(gradients.map((grad) => grad.device))];
  const beginnings = model.plan.map(({ slots }) => {
    const places = slots.map(({ param, offset }) => {
      const { handle } = gradients[param]![bufferSymbol]();
      return handle!.address - 4n * BigInt(offset);
    });
    return new Set(places).size;
  });
  const registered = [counted().registered];
  model.close();
  await group.allReduce(ones([1], { device })); // runs after the buckets' deregistration
  registered.push(counted().registered);
  await group.close();
  return { devices, beginnings, backend: group.backend, registered };
}

/**
 * Trains with two buckets, of which one has at least 1 MiB. Returns whether that one begins at a multiple of 2 MiB,
 * what NCCL knows of the buckets before and after close(), and the averages in them.
 */
export async function whereLargeBuckets(rank: number, backend: string) {
  const [group, device] = await begin(rank, backend);
  const net = made(rank, device, () => new Linear(512, 513));
  using model = await ddp(net, { group, firstBucketBytes: 1024, bucketBytes: 1 << 20 });
  const counts = model.plan.map(({ count }) => count);
  for (let step = 0; step < 3; step++) {
    net.zeroGrad();
    scope(() =>
      model
        .forward(ones([1, 512], { device }).mul(rank + 1 + step))
        .sum()
        .backward(),
    );
  }
  const gradients = [net.bias!, net.weight].map(({ grad }) => grad!);
  const offsets = gradients.map((grad) => Number(grad[bufferSymbol]().handle!.address % (2n << 20n)));
  const averages = gradients.map((grad) => [...new Set(grad.dataSync() as Float32Array)]);
  const known = counted();
  model.close();
  await group.allReduce(ones([1], { device })); // runs after the buckets' deregistration
  const { registered: left } = counted();
  await group.close();
  return { counts, isAligned: offsets[1] === 0, averages, known, left };
}

/**
 * Trains with two buckets and returns the last step's statistics, the trace and the flight record. The first bucket to
 * leave is longer than one piece of a copy through the host.
 */
export async function traced(rank: number, backend: string) {
  const [group, device] = await begin(rank, backend);
  const net = made(
    rank,
    device,
    () => new Sequential(new Linear(256, 640), new ReLU(), new Linear(640, 1104)),
  );
  using model = await ddp(net, { group, bucketBytes: 1 << 20, firstBucketBytes: 1 << 20 });
  for (let step = 0; step < 3; step++) {
    net.zeroGrad();
    scope(() =>
      model
        .forward(ones([1, 256], { device }).mul(rank + 1 + step))
        .sum()
        .backward(),
    );
  }
  const atOnce = model.statistics()!.buckets.map(({ communicationMs }) => communicationMs !== null);
  await group.barrier(); // reports what has ended on the device
  const record = group.flightRecord().filter(({ verb }) => verb === 'allReduce');
  const statistics = model.statistics()!;
  const trace = await model.trace();
  await group.close();
  return { atOnce, statistics, trace, record };
}

/** Returns the errors of a hook that computes in JavaScript and of a captured step. */
export async function refused(rank: number, backend: string) {
  const told: Record<string, string> = {};
  const attempt = async (name: string, run: (group: Group, device: DeviceName) => Promise<void>) => {
    const [group, device] = await begin(rank, backend);
    try {
      await run(group, device);
    } catch (error) {
      const { code, message } = error as CollectiveError | DdpError | TensorError;
      told[name] = `${code} ${message}`;
    }
    await group.close().catch(() => {});
  };
  await attempt('hook', async (group, device) => {
    const model = await ddp(made(rank, device, makeMlp), { group, hook: compressHook('float16') });
    plain.step(model, 0, rank, device);
  });
  await attempt('compile', async (group, device) => {
    const net = made(rank, device, makeMlp);
    const model = await ddp(net, { group });
    const optimizer = sgd(net);
    const step = compile((x: Tensor, y: Tensor) => {
      optimizer.zeroGrad();
      const loss = crossEntropy(model.forward(x), y);
      loss.backward();
      optimizer.step();
      return loss;
    });
    const x = fromHost(waves(rank, share, features), [share, features]).to(device);
    for (let i = 0; i < 4; i++) step(x, labels(rank, share, device));
  });
  return told;
}

/** Trains on one rank with DDP, first in eager steps, then in captured ones. Returns both states. */
export async function capturedAlone(rank: number) {
  const [group, device] = await begin(rank, 'any');
  const train = async (isCompiled: boolean) => {
    const net = made(0, device, makeMlp);
    const model = await ddp(net, { group });
    const optimizer = sgd(net);
    const run = (x: Tensor, y: Tensor) => {
      optimizer.zeroGrad();
      const loss = crossEntropy(model.forward(x), y);
      loss.backward();
      optimizer.step();
      return loss;
    };
    const step = isCompiled ? compile(run) : run;
    for (let i = 0; i < steps; i++) {
      const x = fromHost(waves(i, share, features), [share, features]).to(device);
      step(x, labels(i, share, device));
    }
    return stateOf(net);
  };
  const trained = [await train(false), await train(true)];
  await group.close();
  return trained;
}

/** Trains until a rank is killed. Returns the survivor's error, and a sum that shows that its device still works. */
export async function trainUntilKilled(rank: number, backend: string, port: number) {
  const [group, device] = await begin(rank, backend);
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  const net = made(rank, device, makeMlp);
  const model = await ddp(net, { group, bucketBytes: 1024 });
  const optimizer = sgd(net);
  for (let step = 0; ; step++) {
    try {
      optimizer.zeroGrad();
      scope(() => {
        const loss = mlpLoss(model.forward, 30 * step + rank * share, share, device);
        loss.backward();
        optimizer.step();
        loss.item();
      });
    } catch (error) {
      const { code, peers } = error as CollectiveError;
      await group.close().catch(() => {});
      await control.close();
      return { code, peers, sum: ones([3], { device }).sum().item() };
    }
    if (step === 3) await control.add('ready', 1);
  }
}

/** Creates a tensor on the device with this rank's number. Returns the tensor's device or the error's message. */
export async function ownDevice(rank: number): Promise<string> {
  useTestDevice();
  try {
    return ones([1], { device: `cuda:${rank}` }).device;
  } catch (error) {
    if (!(error instanceof TensorError)) throw error;
    return error.message;
  }
}
