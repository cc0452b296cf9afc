// Model parallelism: each rank holds some layers of one network. It sends activations to the next rank and receives
// gradients from it. A batch is cut into micro-batches, so that a rank computes one micro-batch while the next rank
// computes the one before.
//
//   npx ringwise run --standalone --nproc-per-node 3 examples/pipeline.ts
//
// Claim: the loss falls, and after training the parameters of all ranks are bitwise equal to those of one process that
// holds all layers.
import { init } from '@ringwise/collectives';
import { reportMetrics } from '@ringwise/launch';
import { crossEntropy, fromHost, manualSeed, randn, scope, type Tensor, tensor } from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { readOptions } from './options.ts';

readOptions(import.meta.url, {});
const [width, classes, microBatch, microBatches, steps] = [32, 8, 16, 4, 30];
const shape = [microBatch, width];

await using group = await init();
const { rank, size } = group;
const isFirst = rank === 0;
const isLast = rank === size - 1;

/** Makes all layers, with the same initial values on every rank. Each rank then keeps only its own share. */
function makeLayers() {
  manualSeed(1);
  const depth = Math.max(4, size);
  return Array.from({ length: depth }, (_, i) => {
    const isOutput = i === depth - 1;
    return isOutput ? [new Linear(width, classes)] : [new Linear(width, width), new ReLU()];
  });
}
const blocks = makeLayers();
const share = (of: number) => Math.floor((of * blocks.length) / size);
const stage = new Sequential(...blocks.slice(share(rank), share(rank + 1)).flat());
const whole = new Sequential(...makeLayers().flat());

manualSeed(2);
const data = Array.from({ length: microBatches }, (_, i) => ({
  x: randn(shape),
  labels: Int32Array.from({ length: microBatch }, (_, j) => (i + j) % classes),
}));

/** Receives activations or gradients of one micro-batch. */
async function receive(from: number): Promise<Float32Array> {
  const buffer = new Float32Array(microBatch * width);
  await group.recv(buffer, from);
  return buffer;
}
const send = (t: Tensor, to: number) => group.send(t.dataSync() as Float32Array, to);

/** Runs one training step of this rank's layers. Resolves with the loss on the last rank, with 0 on the others. */
function pipelineStep(optimizer: SGD): Promise<number> {
  return scope(async () => {
    optimizer.zeroGrad();
    let loss = 0;
    const passed: { input: Tensor; output: Tensor }[] = [];
    for (const { x, labels } of data) {
      const input = isFirst ? x : tensor(await receive(rank - 1), { shape, requiresGrad: true });
      const activations = stage.forward(input);
      const output = isLast ? crossEntropy(activations, fromHost(labels)) : activations;
      if (isLast) loss += output.item() / microBatches;
      else await send(output, rank + 1);
      passed.push({ input, output });
    }
    for (const { input, output } of passed) {
      if (isLast) output.backward();
      else output.backward(fromHost(await receive(rank + 1), shape));
      if (!isFirst) await send(input.grad as Tensor, rank - 1);
    }
    optimizer.step();
    return loss;
  });
}

function wholeStep(optimizer: SGD): void {
  scope(() => {
    optimizer.zeroGrad();
    const losses = data.map(({ x, labels }) => crossEntropy(whole.forward(x), fromHost(labels)));
    for (const loss of losses) loss.backward();
    optimizer.step();
  });
}

const [pipelined, alone] = [stage, whole].map(
  (net) => new SGD(net.parameters(), { lr: 0.05, momentum: 0.9 }),
);
const losses: number[] = [];
for (let step = 0; step < steps; step++) {
  losses.push(await pipelineStep(pipelined!));
  if (isLast) reportMetrics({ loss: losses.at(-1)!, samples: microBatch * microBatches });
  wholeStep(alone!);
}

const bits = (net: Sequential) =>
  net.parameters().map((p) => new Uint32Array((p.dataSync() as Float32Array).slice().buffer));
const before = blocks
  .slice(0, share(rank))
  .flat()
  .flatMap((layer) => layer.parameters()).length;
const mine = bits(stage);
const isSame = mine.every((p, i) => p.every((word, at) => word === bits(whole)[before + i]![at]));
const reports = await group.allGatherObject({ isSame, layers: share(rank + 1) - share(rank) });
const [first, last] = (await group.broadcastObject([losses[0]!, losses.at(-1)!], { root: size - 1 })) as [
  number,
  number,
];
if (isFirst) {
  console.log(`${size} stages with ${reports.map(({ layers }) => layers).join(' + ')} layers`);
  console.log(`loss ${first.toFixed(4)} → ${last.toFixed(4)}`);
  console.log(reports.every((one) => one.isSame) ? 'the same bits as in one process' : 'NOT the same bits');
}
if (!isSame || !(last < first / 2))
  throw new Error(`expected the bits of one process and a falling loss, got ${last}`);
