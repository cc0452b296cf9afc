// Trains a digit classifier on threads of one process: dataParallel() is one line, and the rest is a program for one
// process. With --ddp it is the same training on processes, to compare what both cost.
//
//   npx tsx examples/data-parallel.ts                                              as many threads as there are cores
//   npx tsx examples/data-parallel.ts --threads 1                                  one thread
//   npx ringwise run --nproc-per-node 2 examples/data-parallel.ts --ddp            two processes
//   … --steps 100 --batch 256 --json       training steps, samples of a step, one JSON line at the end
//
// Claim: the loss falls. The losses of one thread, of threads and of processes are equal up to rounding.
import { availableParallelism } from 'node:os';
import { init } from '@ringwise/collectives';
import { normalize } from '@ringwise/data';
import { syntheticDigits } from '@ringwise/data/synthetic';
import { dataParallel, ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, fromHost, manualSeed, scope, setNumThreads } from '@ringwise/tensor';
import { Conv2d, Flatten, Linear, MaxPool2d, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { readOptions, whole } from './options.ts';

const args = readOptions(import.meta.url, {
  threads: { type: 'string', default: String(availableParallelism()) },
  steps: { type: 'string', default: '100' },
  batch: { type: 'string', default: '256' },
  ddp: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
});
const threads = whole('--threads', args.threads);
const steps = whole('--steps', args.steps);
const batch = whole('--batch', args.batch);

const samples = 4096;
const { images, labels } = syntheticDigits({ count: samples });
const pixels = normalize(images.data, { mean: 0.12, std: 0.29 });

manualSeed(1);
const net = new Sequential(
  ...[new Conv2d(1, 8, 3, { padding: 'same' }), new ReLU(), new MaxPool2d(2)],
  ...[new Conv2d(8, 16, 3, { padding: 'same' }), new ReLU(), new MaxPool2d(2)],
  ...[new Flatten(), new Linear(16 * 7 * 7, 10)],
);
const optimizer = new SGD(net.parameters(), { lr: 0.01, momentum: 0.9 });

const group = args.ddp ? await init() : null;
const model = group ? await ddp(net, { group }) : await dataParallel(net, { threads }); // the one line
if (!group && threads > 1) setNumThreads(1); // the threads already use the cores

/** Runs a step on samples number `first`, first + every, first + 2 · every … of the batch. Returns the loss. */
function trainOn(step: number, first: number, every: number): number {
  const rows = Array.from({ length: Math.ceil((batch - first) / every) }, (_, i) => first + i * every);
  const chosen = rows.map((row) => (step * batch + row) % samples);
  const x = new Float32Array(chosen.length * 784);
  for (const [i, at] of chosen.entries()) x.set(pixels.subarray(at * 784, (at + 1) * 784), i * 784);
  const y = Int32Array.from(chosen, (at) => labels.data[at]!);
  return scope(() => {
    const loss = crossEntropy(model.forward(fromHost(x, [chosen.length, 1, 28, 28])), fromHost(y));
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss.item();
  });
}

const losses: number[] = [];
const start = performance.now();
for (let step = 0; step < steps; step++) {
  // Threads take the whole batch, which forward() divides. A process takes its own samples only.
  const loss = Float64Array.of(trainOn(step, group?.rank ?? 0, group?.size ?? 1));
  await group?.allReduce(loss, { op: 'avg' });
  losses.push(loss[0]!);
  reportMetrics({ loss: loss[0]!, samples: batch / (group?.size ?? 1) });
}
const msPerStep = (performance.now() - start) / steps;

const { rank, size } = model.group;
if (rank === 0) {
  const [first, last] = [losses[0]!, losses.at(-1)!];
  const what = group ? ['process', 'processes'] : ['thread', 'threads'];
  const where = `${size} ${what[size === 1 ? 0 : 1]}`;
  console.log(`${where}: ${msPerStep.toFixed(2)} ms a step, loss ${first.toFixed(4)} → ${last.toFixed(4)}`);
  if (args.json) console.log(JSON.stringify({ size, isDdp: args.ddp, msPerStep, losses }));
  if (steps >= 50 && !(last < first / 2)) throw new Error(`expected the loss to halve, got ${last}`);
}
await (group ?? model).close();
