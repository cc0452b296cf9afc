// Contrastive learning: two encoders learn to give equal embeddings to two views of a sample, and others to different
// samples. The more samples are compared, the better, so each rank compares its own with those of all ranks: the
// embeddings are gathered, and their gradients go back to the rank that computed them.
//
//   npx ringwise run --standalone --nproc-per-node 4 examples/contrastive.ts
//
// Claim: losses, gradients and trained parameters are those of one process with the joined batch; the loss falls.
// Without the gradients through the gather, the parameters' gradients differ clearly.
//
// Gradients through the gather are sent inside backward, so the backend must be able to block: not `tcp`.
import { across, init } from '@ringwise/collectives';
import { ddp } from '@ringwise/ddp';
import { reportMetrics } from '@ringwise/launch';
import {
  crossEntropy,
  manualSeed,
  narrow,
  noGrad,
  randn,
  scope,
  type Tensor,
  tensor,
} from '@ringwise/tensor';
import { Linear, Module, ReLU, Sequential } from '@ringwise/tensor/nn';
import { AdamW } from '@ringwise/tensor/optim';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {});
const [features, width, ownBatch, steps, temperature] = [24, 16, 8, 40, 0.1];

/** Two encoders, one for each view. The embeddings have length 1. */
class Encoders extends Module {
  readonly first = encoder();
  readonly second = encoder();

  forward(views: readonly [Tensor, Tensor]): readonly [Tensor, Tensor] {
    const [a, b] = views;
    return [unit(this.first.forward(a)), unit(this.second.forward(b))];
  }
}
/** Scales each row to length 1. */
function unit(x: Tensor): Tensor {
  return x.div(x.square().sum(-1, true).sqrt());
}
function encoder(): Sequential {
  return new Sequential(new Linear(features, 32), new ReLU(), new Linear(32, width));
}
function makeEncoders(): Encoders {
  manualSeed(1);
  return new Encoders();
}

await using group = await init();
const { rank, size } = group;
const batch = ownBatch * size;
// The verbs have a group of their own, because ddp averages gradients on its group at the same time.
const exchange = (await group.split(0, rank, { name: 'embeddings' }))!;
const verbs = across(exchange);

/** Two noisy views of the samples of all ranks in one step. */
function viewsOf(step: number): readonly [Tensor, Tensor] {
  manualSeed(100 + step);
  const samples = randn([batch, features]);
  const view = () => samples.add(randn([batch, features]).mul(0.3));
  return [view(), view()];
}
const ownRows = (x: Tensor): Tensor => narrow(x, 0, rank * ownBatch, ownBatch);

/** The loss of `mine`: each is nearer to its other view, among `all` from row `from` on, than to all others. */
function loss(mine: Tensor, all: Tensor, from: number): Tensor {
  const labels = Int32Array.from({ length: mine.shape[0]! }, (_, i) => from + i);
  return crossEntropy(mine.matmul(all.t()).div(temperature), tensor(labels));
}

/** The loss of this rank's samples. Each rank computes its own from the gathered embeddings: `after: 'own'`. */
function ownLoss([a, b]: readonly [Tensor, Tensor], gather: (x: Tensor) => Tensor): Tensor {
  const from = rank * ownBatch;
  return loss(a, gather(b), from)
    .add(loss(b, gather(a), from))
    .div(2);
}
const gathered = (x: Tensor): Tensor => verbs.allGatherSync(x, { dim: 0, after: 'own' });
/** What is often done instead: the values of the others, and a gradient through the own rows alone. */
const gatheredValues = (x: Tensor): Tensor => noGrad(() => gathered(x));

/** The loss of all samples in one process. */
function joinedLoss([a, b]: readonly [Tensor, Tensor]): Tensor {
  return loss(a, b, 0)
    .add(loss(b, a, 0))
    .div(2);
}

/** Returns the largest difference between two lists of tensors, relative to the largest element of the second. */
function difference(some: readonly (Tensor | null)[], others: readonly (Tensor | null)[]): number {
  let [largest, scale] = [0, 0];
  for (const [i, one] of some.entries()) {
    const [x, y] = [one!.dataSync() as Float32Array, others[i]!.dataSync() as Float32Array];
    for (const [k, value] of y.entries()) {
      largest = Math.max(largest, Math.abs(x[k]! - value));
      scale = Math.max(scale, Math.abs(value));
    }
  }
  return largest / scale;
}

const net = makeEncoders();
const model = await ddp(net, { group });
const alone = makeEncoders(); // learns from the samples of all ranks in this process
const optimizer = new AdamW(net.parameters(), { lr: 0.01 });
const aloneOptimizer = new AdamW(alone.parameters(), { lr: 0.01 });
const grads = (of: Module) => of.parameters().map(({ grad }) => grad);

/** Runs forward and backward on this rank's rows. Returns the loss of all samples: the mean over the ranks. */
function ownStep(views: readonly [Tensor, Tensor], gather: (x: Tensor) => Tensor): number {
  optimizer.zeroGrad();
  return scope(() => {
    const own = ownLoss(model.forward([ownRows(views[0]), ownRows(views[1])]), gather);
    const mean = noGrad(() => verbs.allReduceSync(own.detach(), { op: 'avg', after: 'same' })).item();
    own.backward(); // ddp averages the parameters' gradients
    return mean;
  });
}
function aloneStep(views: readonly [Tensor, Tensor]): number {
  aloneOptimizer.zeroGrad();
  return scope(() => {
    const joined = joinedLoss(alone.forward(views));
    joined.backward();
    return joined.item();
  });
}

const losses: number[] = [];
let [lossGap, gradGap, valuesGap] = [0, 0, 0];
for (let step = 0; step < steps; step++) {
  scope(() => {
    const views = viewsOf(step);
    const expected = aloneStep(views);
    if (step === 0) {
      ownStep(views, gatheredValues);
      valuesGap = difference(grads(net), grads(alone));
    }
    losses.push(ownStep(views, gathered));
    lossGap = Math.max(lossGap, Math.abs(losses[step]! - expected));
    if (step === 0) gradGap = difference(grads(net), grads(alone));
    optimizer.step();
    aloneOptimizer.step();
    reportMetrics({ step, steps, loss: losses[step]!, samples: ownBatch, ddp: model.statistics() });
  });
}
const parameterGap = difference(net.parameters(), alone.parameters());

if (rank === 0) {
  console.log(`${size} × ${ownBatch} samples: loss ${losses[0]!.toFixed(3)} to ${losses.at(-1)!.toFixed(3)}`);
  console.log(
    `from one process differ: losses ${lossGap.toExponential(0)}, gradients ${gradGap.toExponential(0)}, parameters ${parameterGap.toExponential(0)}`,
  );
  console.log(`gradients without those through the gather differ by ${valuesGap.toFixed(2)}`);
}
if (!(losses.at(-1)! < losses[0]! / 4))
  throw new Error(`the loss went from ${losses[0]} to ${losses.at(-1)}`);
if (!(lossGap < 1e-4 && gradGap < 1e-5 && parameterGap < 1e-3))
  throw new Error('one process gives other values');
if (size > 1 && valuesGap < 0.05)
  throw new Error('expected other gradients without those through the gather');
