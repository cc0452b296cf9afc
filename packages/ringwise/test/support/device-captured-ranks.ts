// Functions that the ranks of device-captured.test.ts run. Most of them let `compile` capture, on the rank's test
// device, a training step or a step of NCCL collectives.
import { createRequire } from 'node:module';
import { type BufferLike, type CollectiveError, type Group, init } from '@ringwise/collectives';
import { assertInSync, type DdpOptions, type DistributedDataParallel, ddp, wireHook } from '@ringwise/ddp';
import { TcpStore } from '@ringwise/store';
import {
  arange,
  type CompiledStep,
  compile,
  crossEntropy,
  type DeviceName,
  fromHost,
  keep,
  manualSeed,
  matmul,
  ones,
  scope,
  type Tensor,
  zeros,
} from '@ringwise/tensor';
import {
  BatchNorm1d,
  Embedding,
  LayerNorm,
  Linear,
  Module,
  ReLU,
  Sequential,
  TransformerBlock,
} from '@ringwise/tensor/nn';
import { AdamW } from '@ringwise/tensor/optim';
import { deviceMemoryAddon, testDeviceOf, useTestDevice } from '@ringwise/testing';

const steps = 8;
const [features, classes, samplesPerRank] = [20, 4, 4];
const samplesApart = 30; // between the first samples of two steps
const [sequenceLength, width, vocab] = [6, 8, 9];

const bufferOf = (tensor: Tensor): BufferLike => tensor as unknown as BufferLike;

async function begin(rank: number, backend = 'nccl', timeoutMs = 20_000): Promise<[Group, DeviceName]> {
  useTestDevice();
  return [await init({ backend, timeoutMs }), `cuda:${testDeviceOf(rank)}`];
}

class Gpt extends Module {
  readonly tokens = new Embedding(vocab, width);
  readonly positions = new Embedding(sequenceLength, width);
  readonly block = new TransformerBlock(width, 2, { causal: true });
  readonly norm = new LayerNorm(width);
  /** Created once, in a warm-up: a captured step cannot contain a tensor whose values the host makes. */
  #positionIndices: Tensor | null = null;

  forward(x: Tensor): Tensor {
    this.#positionIndices ??= keep(arange(0, sequenceLength, 1, { dtype: 'int64', device: x.device }));
    const hidden = this.block.forward(
      this.tokens.forward(x).add(this.positions.forward(this.#positionIndices)),
    );
    return matmul(this.norm.forward(hidden), this.tokens.weight.t()).reshape([-1, vocab]);
  }
}

/** Networks, with functions that return the inputs and labels of `count` samples beginning at `from`. */
const tasks = {
  mlp: {
    make: () =>
      new Sequential(
        new Linear(features, 24),
        new ReLU(),
        new Linear(24, 24),
        new ReLU(),
        new Linear(24, classes),
      ),
    input: (from: number, count: number) => {
      const wave = Float32Array.from({ length: count * features }, (_, i) =>
        Math.cos(0.37 * (from * features + i)),
      );
      return fromHost(wave, [count, features]);
    },
    label: (from: number, count: number) =>
      fromHost(Int32Array.from({ length: count }, (_, i) => (from + i) % classes)),
  },
  // DDP broadcasts the running statistics of BatchNorm1d with each step.
  normed: {
    make: () =>
      new Sequential(new Linear(features, 24), new BatchNorm1d(24), new ReLU(), new Linear(24, classes)),
    input: (from: number, count: number): Tensor => tasks.mlp.input(from, count),
    label: (from: number, count: number): Tensor => tasks.mlp.label(from, count),
  },
  gpt: {
    make: () => new Gpt(),
    input: (from: number, count: number) => fromHost(tokens(from, count, 0), [count, sequenceLength]),
    label: (from: number, count: number) => fromHost(tokens(from, count, 1)),
  },
} as const;
export type Task = keyof typeof tasks;

const tokens = (from: number, count: number, shift: number): Int32Array =>
  Int32Array.from({ length: count * sequenceLength }, (_, i) => {
    const t = (i % sequenceLength) + shift;
    return ((from + Math.floor(i / sequenceLength)) * 5 + t * t + (t >> 1)) % vocab;
  });

type Net = Module & { forward: (x: Tensor) => Tensor };

function makeNet(task: Task, seed: number, device: DeviceName): Net {
  manualSeed(seed);
  return tasks[task].make().to(device) as Net;
}

const optimizerOf = (net: Module): AdamW =>
  new AdamW(net.parameters(), { lr: 0.01, eps: 1e-3, weightDecay: 0.1 });

const stateOf = (net: Module): Float32Array =>
  Float32Array.from(
    [...net.parameters(), ...net.buffers()].flatMap((t) => Array.from(t.dataSync() as Float32Array, Number)),
  );

/** Returns one step of training as a function of its batch. */
function stepOf(model: DistributedDataParallel<Net>, optimizer: AdamW): (x: Tensor, y: Tensor) => Tensor {
  return (x, y) => {
    optimizer.zeroGrad();
    const loss = crossEntropy(model.forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
}

/** Trains on the CPU in this process, with the batches of all `size` ranks together. Returns parameters and buffers. */
export function alone(task: Task, size: number): Float32Array {
  const net = makeNet(task, 0, 'cpu');
  const optimizer = optimizerOf(net);
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => {
      const [x, y] = [
        tasks[task].input(samplesApart * step, size * samplesPerRank),
        tasks[task].label(samplesApart * step, size * samplesPerRank),
      ];
      crossEntropy(net.forward(x), y).backward();
    });
    optimizer.step();
  }
  return stateOf(net);
}

/**
 * Trains the task with an eager step, then anew with a captured one. Returns, for both, parameters and buffers and this
 * rank's loss of every third step, and what the flight recorder notes of the captured steps.
 */
export async function train(rank: number, task: Task, options: Partial<DdpOptions> = {}) {
  const [group, device] = await begin(rank);
  const run = async (isCaptured: boolean) => {
    const net = makeNet(task, rank, device);
    using model = await ddp(net, { group, bucketBytes: 1024, ...options });
    const optimizer = optimizerOf(net);
    const plain = stepOf(model, optimizer);
    const step = isCaptured ? compile(plain) : plain;
    const losses: number[] = [];
    for (let i = 0; i < steps; i++) {
      scope(() => {
        const from = samplesApart * i + rank * samplesPerRank;
        const loss = step(
          tasks[task].input(from, samplesPerRank).to(device),
          tasks[task].label(from, samplesPerRank).to(device),
        );
        if (i % 3 === 2) losses.push(loss.item());
      });
      // An eager collective between two runs must keep its position among the collectives of the step.
      if (i === 4) await assertInSync(net, group);
    }
    const isReplayed = isCaptured && (step as CompiledStep<[Tensor, Tensor], Tensor>).isCaptured;
    return { state: stateOf(net), losses, isReplayed, statisticsStep: model.statistics()?.step ?? -1 };
  };
  const eager = await run(false);
  const captured = await run(true);
  await new Promise(setImmediate); // the event loop notes the ends of captured steps
  const record = group.flightRecord().filter(({ verb }) => verb === 'capturedStep');
  await group.close();
  const runs = record.map(({ state, algorithm }) => `${state}: ${algorithm}`);
  return { eager, captured, runs };
}

/**
 * Captures a step with an all-reduce, a broadcast, an all-gather and a reduce-scatter. The input of run i is that of
 * the first run times i + 1. Returns the results of each run divided by i + 1: all runs, eager or captured, must return
 * the same.
 */
export async function verbs(rank: number) {
  const [group, device] = await begin(rank);
  const size = group.size;
  const body = (x: Tensor) => {
    const sum = x.mul(1);
    group.allReduceSync(bufferOf(sum));
    const largest = x.mul(2);
    const late = group.allReduce(bufferOf(largest), { op: 'max' }); // not waited for by the stream
    const first = x.mul(3);
    group.broadcast(bufferOf(first), { root: 1 }).fence();
    const all = zeros([size * x.count], { device });
    group.allGather(bufferOf(x), bufferOf(all)).fence();
    const [a, b] = [x.mul(5), x.mul(7)];
    group.allReduce([bufferOf(a), bufferOf(b)], { op: 'avg' }).fence();
    const part = zeros([x.count / size], { device });
    group.reduceScatter(bufferOf(sum), bufferOf(part)).fence();
    const after = sum.add(first); // may run at the same time as the all-reduce without a fence
    // A captured step may return a promise beside its tensors.
    return { sum, largest, first, all, a, b, part, after, late: late.done };
  };
  const step = compile(body);
  const seen: number[][] = [];
  for (let i = 0; i < 5; i++) {
    scope(() => {
      const x = ones([4], { device }).mul((rank + 1) * (i + 1));
      const { late: _, ...tensors } = step(x);
      group.barrierSync();
      seen.push(
        Object.values(tensors).flatMap((tensor) => Array.from(tensor.dataSync() as Float32Array, Number)),
      );
    });
  }
  await group.close();
  return seen.map((values, i) => values.map((value) => value / (i + 1)));
}

/**
 * Reduces three buffers with one call, in an eager run and then captured. Returns how many ncclGroupStart() …
 * ncclGroupEnd() pairs each execution of the body used, and one element of each result.
 */
export async function lists(rank: number) {
  const [group, device] = await begin(rank);
  const { batches } = createRequire(import.meta.url)(deviceMemoryAddon) as { batches: () => number };
  const counts: number[] = [];
  const step = compile(
    (x: Tensor) => {
      const list = [1, 10, 100].map((factor) => x.mul(factor));
      const before = batches();
      group.allReduce(list.map(bufferOf)).fence();
      counts.push(batches() - before);
      return list;
    },
    { device, warmUps: 1 },
  );
  const seen: number[][] = [];
  for (let i = 1; i <= 3; i++) {
    scope(() => {
      const list = step(ones([2], { device }).mul(i * (rank + 1)));
      seen.push(list.map((tensor) => (tensor.dataSync() as Float32Array)[1]!));
    });
  }
  await group.close();
  return { counts, seen };
}

/**
 * Captures an all-reduce and a broadcast in place in a group of one rank, where they have nothing to do. Then captures
 * an all-gather, which would have to copy. Returns its error as `text`.
 */
export async function single(rank: number) {
  const [group, device] = await begin(rank, 'auto');
  const step = compile(
    (x: Tensor) => {
      const doubled = x.mul(2);
      group.allReduceSync([bufferOf(x), bufferOf(doubled)], { op: 'avg' });
      group.broadcast(bufferOf(doubled)).fence();
      return doubled.add(1);
    },
    { device, warmUps: 1 },
  );
  const seen: number[] = [];
  for (let i = 1; i <= 4; i++) {
    scope(() => seen.push(...(step(ones([2], { device }).mul(i)).dataSync() as Float32Array)));
  }
  const runs = group.flightRecord().filter(({ verb }) => verb === 'capturedStep');
  const copying = compile(
    () => {
      const [part, whole] = [ones([2], { device }), zeros([2], { device })];
      group.allGather(bufferOf(part), bufferOf(whole)).fence();
    },
    { device, warmUps: 1 },
  );
  copying();
  const text = await errorTextOf(group, copying);
  return {
    backend: group.backend,
    seen,
    runs: runs.map(({ state, algorithm }) => `${state}: ${algorithm}`),
    text,
  };
}

/** Runs `run` and returns its error as text, or 'nothing'. Closes the group. */
async function errorTextOf(group: Group, run: () => unknown): Promise<string> {
  try {
    await run();
    return 'nothing';
  } catch (error) {
    const { code, message } = error as CollectiveError;
    return `${code} ${message}`;
  } finally {
    await group.close().catch(() => {});
  }
}

/**
 * Returns a function that all-reduces 20 elements, and its compiled step. From the second execution on (the first that
 * is captured), rank 1 does as `rank1` says: reduces 24 elements ('longer'), or reduces twice.
 */
function reducing(group: Group, device: DeviceName, rank1: 'same' | 'longer' | 'twice' = 'same') {
  const short = ones([20], { device });
  const long = ones([24], { device });
  let calls = 0;
  const body = () => {
    const deviates = group.rank === 1 && calls++ > 0;
    group.allReduce(bufferOf(deviates && rank1 === 'longer' ? long : short), { op: 'avg' }).fence();
    if (deviates && rank1 === 'twice') group.allReduce(bufferOf(short), { op: 'avg' }).fence();
  };
  return { body, step: compile(body, { device, warmUps: 1 }) };
}

/**
 * Lets rank 1 capture or run other steps than rank 0, as `how` says. Both ranks go on until they get an error; with
 * 'same' they run all steps.
 */
export async function disagree(rank: number, how: 'same' | 'longer' | 'twice' | 'eager' | 'other step') {
  const [group, device] = await begin(rank);
  const runsOther = rank === 1 && (how === 'eager' || how === 'other step');
  const { body, step } = reducing(group, device, how === 'eager' || how === 'other step' ? 'same' : how);
  const { step: second } = reducing(group, device);
  return errorTextOf(group, async () => {
    for (let i = 0; i < 3; i++) {
      step();
      second();
    }
    if (runsOther) (how === 'eager' ? body : second)();
    else step();
    for (let i = 0; i < 100; i++) step();
    await group.barrier();
  });
}

/**
 * Lets rank 1 pause for 15 s. Then both ranks run steps until one fails: rank 0 at once, rank 1 after its pause.
 * Returns this rank's error, the time from its first such step until its group is closed, and a sum that it reads after
 * that.
 */
export async function lateRank(rank: number, port: number, timeoutMs: number, yieldsToEventLoop: boolean) {
  const [group, device] = await begin(rank, 'nccl', timeoutMs);
  const { step } = reducing(group, device);
  const sum = ones([3], { device });
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  for (let i = 0; i < 5; i++) step();
  await group.barrier();
  await control.add('ready', 1);
  if (rank === 1) await new Promise((resolve) => setTimeout(resolve, 15_000));
  const beganAtMs = Date.now();
  const text = await errorTextOf(group, async () => {
    for (;;) {
      step();
      if (yieldsToEventLoop) await new Promise((resolve) => setTimeout(resolve, 1));
      else sum.add(1).sum().item(); // blocks until the device has run the step
    }
  });
  const tookMs = Date.now() - beganAtMs;
  await control.close();
  return { text, tookMs, sum: sum.sum().item() };
}

/**
 * Captures steps that compile() must refuse, and two that it accepts: 'works', and 'closed', whose group is closed
 * before the last run. Returns the error of each by its name, 'nothing' where there was none.
 */
export async function refused(rank: number) {
  const answers: Record<string, string> = {};
  const attempt = async (
    name: string,
    run: (group: Group, device: DeviceName) => unknown,
    backend = 'nccl',
  ): Promise<void> => {
    const [group, device] = await begin(rank, backend);
    answers[name] = await errorTextOf(group, () => run(group, device));
  };
  const capturedWith = (name: string, body: (group: Group, device: DeviceName) => void, backend = 'nccl') =>
    attempt(
      name,
      (group, device) => {
        let calls = 0;
        // The warm-up does nothing, so that `body` runs only while the step is captured.
        const step = compile(() => void (calls++ > 0 && body(group, device)), { device, warmUps: 1 });
        step();
        step();
      },
      backend,
    );
  await capturedWith('host memory', (group) => group.allReduceSync(new Float32Array(4)));
  await capturedWith('barrier', (group) => group.barrier().fence());
  await capturedWith('object', (group) => group.broadcastObject({ a: 1 }).fence());
  await capturedWith('message', (group, device) =>
    group.send(bufferOf(ones([4], { device })), (rank + 1) % 2).fence(),
  );
  await capturedWith(
    'host backend',
    (group, device) => group.allReduceSync(bufferOf(ones([4], { device }))),
    'host',
  );

  const trained = (
    name: string,
    options: Partial<DdpOptions>,
    call: (run: () => void, model: DistributedDataParallel<Net>, i: number) => unknown = (run) => run(),
    weight?: number,
  ) =>
    attempt(name, async (group, device) => {
      const net = makeNet('mlp', 0, device);
      using model = await ddp(net, { group, ...options });
      const optimizer = optimizerOf(net);
      const step = compile((x: Tensor, y: Tensor) => {
        optimizer.zeroGrad();
        const loss = crossEntropy(model.forward(x), y);
        if (weight === undefined) loss.backward();
        else model.backward(loss, { weight });
        optimizer.step();
      });
      const run = () => {
        const [x, y] = [
          tasks.mlp.input(rank * samplesPerRank, samplesPerRank),
          tasks.mlp.label(rank * samplesPerRank, samplesPerRank),
        ];
        scope(() => step(x.to(device), y.to(device)));
      };
      for (let i = 0; i < 4; i++) await call(run, model, i);
    });
  await trained('skip', { unused: 'skip' });
  await trained('hook', { hook: wireHook('bfloat16') });
  await trained('weights', {}, undefined, 2);
  await trained('join', {}, (run, model) => model.join(run));
  await trained('noSync', {}, (run, model, i) => (i === 3 ? model.noSync(run) : run()));
  await trained('closed model', {}, (run, model, i) => {
    if (i === 3) model.close();
    run();
  });
  await trained('works', { unused: 'zero', rebuild: true, staticGraph: true });
  await attempt('closed', async (group, device) => {
    const { step } = reducing(group, device);
    for (let i = 0; i < 3; i++) step();
    await group.close();
    step();
  });
  return answers;
}

/** Returns without closing the group, so that the process exits while a captured step and the group exist. */
export async function leave(rank: number): Promise<number> {
  const [group, device] = await begin(rank);
  const { step } = reducing(group, device);
  for (let i = 0; i < 5; i++) step();
  await group.barrier();
  return rank;
}
