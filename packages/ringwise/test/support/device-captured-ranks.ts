// Functions that the ranks of device-captured.test.ts run: steps that `compile` captures on the test device, with NCCL
// collectives in them.
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
const [features, classes, share] = [20, 4, 4];
const [time, width, vocab] = [6, 8, 9];

const shared = (tensor: Tensor): BufferLike => tensor as unknown as BufferLike;

async function begin(rank: number, backend = 'nccl', timeoutMs = 20_000): Promise<[Group, DeviceName]> {
  useTestDevice();
  return [await init({ backend, timeoutMs }), `cuda:${testDeviceOf(rank)}`];
}

class Gpt extends Module {
  readonly tokens = new Embedding(vocab, width);
  readonly places = new Embedding(time, width);
  readonly block = new TransformerBlock(width, 2, { causal: true });
  readonly norm = new LayerNorm(width);
  /** Created once, in a warm-up: a captured step cannot contain a tensor whose values the host makes. */
  #time: Tensor | null = null;

  forward(x: Tensor): Tensor {
    this.#time ??= keep(arange(0, time, 1, { dtype: 'int64', device: x.device }));
    const hidden = this.block.forward(this.tokens.forward(x).add(this.places.forward(this.#time)));
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
  // DDP sends its running statistics with each step.
  normed: {
    make: () =>
      new Sequential(new Linear(features, 24), new BatchNorm1d(24), new ReLU(), new Linear(24, classes)),
    input: (from: number, count: number): Tensor => tasks.mlp.input(from, count),
    label: (from: number, count: number): Tensor => tasks.mlp.label(from, count),
  },
  gpt: {
    make: () => new Gpt(),
    input: (from: number, count: number) => fromHost(tokens(from, count, 0), [count, time]),
    label: (from: number, count: number) => fromHost(tokens(from, count, 1)),
  },
} as const;
export type Task = keyof typeof tasks;

const tokens = (from: number, count: number, shift: number): Int32Array =>
  Int32Array.from({ length: count * time }, (_, i) => {
    const t = (i % time) + shift;
    return ((from + Math.floor(i / time)) * 5 + t * t + (t >> 1)) % vocab;
  });

type Net = Module & { forward: (x: Tensor) => Tensor };

function made(task: Task, seed: number, device: DeviceName): Net {
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

/** Trains the task on `size` ranks' data in this process on the CPU. */
export function alone(task: Task, size: number): Float32Array {
  const net = made(task, 0, 'cpu');
  const optimizer = optimizerOf(net);
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => {
      const [x, y] = [tasks[task].input(30 * step, size * share), tasks[task].label(30 * step, size * share)];
      crossEntropy(net.forward(x), y).backward();
    });
    optimizer.step();
  }
  return stateOf(net);
}

/** Trains the task eagerly, then captured. Returns states and this rank's losses, which it reads in some steps only. */
export async function train(rank: number, task: Task, options: Partial<DdpOptions> = {}) {
  const [group, device] = await begin(rank);
  const run = async (isCaptured: boolean) => {
    const net = made(task, rank, device);
    using model = await ddp(net, { group, bucketBytes: 1024, ...options });
    const optimizer = optimizerOf(net);
    const plain = stepOf(model, optimizer);
    const step = isCaptured ? compile(plain) : plain;
    const losses: number[] = [];
    for (let i = 0; i < steps; i++) {
      scope(() => {
        const from = 30 * i + rank * share;
        const loss = step(
          tasks[task].input(from, share).to(device),
          tasks[task].label(from, share).to(device),
        );
        if (i % 3 === 2) losses.push(loss.item());
      });
      // Collectives between two runs of the step take their place in the sequence of the group's calls.
      if (i === 4) await assertInSync(net, group);
    }
    const isReplayed = isCaptured && (step as CompiledStep<[Tensor, Tensor], Tensor>).isCaptured;
    return { state: stateOf(net), losses, isReplayed, statistics: model.statistics()?.step ?? -1 };
  };
  const eager = await run(false);
  const captured = await run(true);
  const record = group.flightRecord().filter(({ verb }) => verb === 'capturedStep');
  await group.close();
  const runs = record.map(({ state, algorithm }) => `${state}: ${algorithm}`);
  return { eager, captured, runs };
}

/** Captures a step with collectives of all kinds. Returns the results of its runs, which must equal eager results. */
export async function verbs(rank: number) {
  const [group, device] = await begin(rank);
  const size = group.size;
  const body = (x: Tensor) => {
    const sum = x.mul(1);
    group.allReduceSync(shared(sum));
    const largest = x.mul(2);
    const late = group.allReduce(shared(largest), { op: 'max' }); // no rank waits for it
    const first = x.mul(3);
    group.broadcast(shared(first), { root: 1 }).fence();
    const all = zeros([size * x.count], { device });
    group.allGather(shared(x), shared(all)).fence();
    const [a, b] = [x.mul(5), x.mul(7)];
    group.allReduce([shared(a), shared(b)], { op: 'avg' }).fence();
    const part = zeros([x.count / size], { device });
    group.reduceScatter(shared(sum), shared(part)).fence();
    const after = sum.add(first); // runs beside the operation that no rank waits for
    return { sum, largest, first, all, a, b, part, after, late: late.done };
  };
  const step = compile(body);
  const seen: number[][] = [];
  for (let i = 0; i < 5; i++) {
    scope(() => {
      const x = ones([4], { device }).mul((rank + 1) * (i + 1));
      const { late: _, ...made } = step(x);
      group.barrierSync();
      seen.push(
        Object.values(made).flatMap((tensor) => Array.from(tensor.dataSync() as Float32Array, Number)),
      );
    });
  }
  await group.close();
  return seen.map((values, i) => values.map((value) => value / (i + 1)));
}

/** Reduces many buffers in one call, eager and then captured. Returns NCCL's groups of calls, and the results. */
export async function lists(rank: number) {
  const [group, device] = await begin(rank);
  const { batches } = createRequire(import.meta.url)(deviceMemoryAddon) as { batches: () => number };
  const counts: number[] = [];
  const step = compile(
    (x: Tensor) => {
      const list = [1, 10, 100].map((factor) => x.mul(factor));
      const before = batches();
      group.allReduce(list.map(shared)).fence();
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

/** Captures collectives of one rank, which leave its memory alone, then one that copies, which fails with `text`. */
export async function single(rank: number) {
  const [group, device] = await begin(rank, 'auto');
  const step = compile(
    (x: Tensor) => {
      const made = x.mul(2);
      group.allReduceSync([shared(x), shared(made)], { op: 'avg' });
      group.broadcast(shared(made)).fence();
      return made.add(1);
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
      group.allGather(shared(part), shared(whole)).fence();
    },
    { device, warmUps: 1 },
  );
  copying();
  const text = await told(group, copying);
  return {
    backend: group.backend,
    seen,
    runs: runs.map(({ state, algorithm }) => `${state}: ${algorithm}`),
    text,
  };
}

/** Runs `run` and returns its error as text, or 'nothing'. Closes the group. */
async function told(group: Group, run: () => unknown): Promise<string> {
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

/** Returns a step that reduces 20 elements. In its second call, which is captured, rank 1 does as `when` says. */
function reducing(group: Group, device: DeviceName, when: 'same' | 'longer' | 'twice' = 'same') {
  const isOdd = group.rank === 1;
  const short = ones([20], { device });
  const long = ones([24], { device });
  let calls = 0;
  const body = () => {
    const isOther = isOdd && calls++ > 0;
    group.allReduce(shared(isOther && when === 'longer' ? long : short), { op: 'avg' }).fence();
    if (isOther && when === 'twice') group.allReduce(shared(short), { op: 'avg' }).fence();
  };
  return { body, step: compile(body, { device, warmUps: 1 }) };
}

/** Lets rank 1 capture or run something else. Both ranks go on until they get an error, or to the end if they agree. */
export async function disagree(rank: number, how: 'same' | 'longer' | 'twice' | 'eager' | 'other step') {
  const [group, device] = await begin(rank);
  const isOther = rank === 1 && (how === 'eager' || how === 'other step');
  const { body, step } = reducing(group, device, isOther ? 'same' : (how as 'same'));
  const { step: second } = reducing(group, device);
  return told(group, async () => {
    for (let i = 0; i < 3; i++) {
      step();
      second();
    }
    if (isOther) (how === 'eager' ? body : second)();
    else step();
    for (let i = 0; i < 100; i++) step();
    await group.barrier();
  });
}

/** Runs steps while rank 1 pauses for 15 s. Returns the error that a rank gets, and after how long it gets it. */
export async function lateRank(rank: number, port: number, timeoutMs: number, isAwaited: boolean) {
  const [group, device] = await begin(rank, 'nccl', timeoutMs);
  const { step } = reducing(group, device);
  const sum = ones([3], { device });
  const control = await TcpStore.connect({ host: '127.0.0.1', port });
  for (let i = 0; i < 5; i++) step();
  await group.barrier();
  await control.add('ready', 1);
  if (rank === 1) await new Promise((resolve) => setTimeout(resolve, 15_000));
  const beganAtMs = Date.now();
  const text = await told(group, async () => {
    for (;;) {
      step();
      if (isAwaited) await new Promise((resolve) => setTimeout(resolve, 1));
      else sum.add(1).sum().item(); // blocks until the device has run the step
    }
  });
  const endedAtMs = Date.now();
  await control.close();
  return { text, tookMs: endedAtMs - beganAtMs, endedAtMs, sum: sum.sum().item() };
}

/** Captures steps that cannot be captured. Returns the error of each by name. */
export async function refused(rank: number) {
  const answers: Record<string, string> = {};
  const attempt = async (
    name: string,
    run: (group: Group, device: DeviceName) => unknown,
    backend = 'nccl',
  ): Promise<void> => {
    const [group, device] = await begin(rank, backend);
    answers[name] = await told(group, () => run(group, device));
  };
  const capturedWith = (name: string, body: (group: Group, device: DeviceName) => void, backend = 'nccl') =>
    attempt(
      name,
      (group, device) => {
        let calls = 0;
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
    group.send(shared(ones([4], { device })), (rank + 1) % 2).fence(),
  );
  await capturedWith(
    'host backend',
    (group, device) => group.allReduceSync(shared(ones([4], { device }))),
    'host',
  );

  const trained = (
    name: string,
    options: Partial<DdpOptions>,
    call: (run: () => void, model: DistributedDataParallel<Net>) => unknown = (run) => run(),
    weight?: number,
  ) =>
    attempt(name, async (group, device) => {
      const net = made('mlp', 0, device);
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
        const [x, y] = [tasks.mlp.input(rank * share, share), tasks.mlp.label(rank * share, share)];
        scope(() => step(x.to(device), y.to(device)));
      };
      for (let i = 0; i < 4; i++) await call(run, model);
    });
  await trained('skip', { unused: 'skip' });
  await trained('hook', { hook: wireHook('bfloat16') });
  await trained('weights', {}, undefined, 2);
  await trained('join', {}, (run, model) => model.join(run));
  let calls = 0;
  await trained('noSync', {}, (run, model) => (calls++ === 3 ? model.noSync(run) : run()));
  await trained('closed model', {}, (run, model) => {
    if (calls++ === 7) model.close();
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

/** Leaves the process with a captured step and an open group. */
export async function leave(rank: number): Promise<number> {
  const [group, device] = await begin(rank);
  const { step } = reducing(group, device);
  for (let i = 0; i < 5; i++) step();
  await group.barrier();
  return rank;
}
