// Functions that the ranks of snapshot.test.ts run: a training by the recipe of @ringwise/ddp's README, with dropout,
// and a collective call that only one rank makes.
import { init } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, type SamplerState } from '@ringwise/data';
import { assertInSync, ddp, loadSnapshot, type SnapshotTensor, saveSnapshot } from '@ringwise/ddp';
import {
  crossEntropy,
  fromHost,
  type GeneratorState,
  manualSeed,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { BatchNorm1d, Dropout, Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { AdamW, type OptimizerState } from '@ringwise/tensor/optim';

const samples = 40;
const width = 6;

interface Saved {
  readonly model: Record<string, Tensor>;
  readonly optimizer: OptimizerState;
  readonly loader: SamplerState;
  readonly rng: GeneratorState;
}

const dataset = new ArrayDataset({
  x: { data: Float32Array.from({ length: samples * width }, (_, i) => Math.cos(0.37 * i)), shape: [width] },
  y: { data: Int32Array.from({ length: samples }, (_, i) => i % 3), shape: [] },
});

/**
 * Trains up to `steps` steps, in 3 epochs of 5 steps on 2 ranks, and saves a snapshot. Returns the parameters and the
 * state of this rank's random generator.
 */
export async function train(rank: number, file: string, steps = Infinity) {
  await using group = await init();
  const rng = manualSeed(7 + rank); // gives each rank its own dropout masks
  const layers = [new Linear(width, 16), new BatchNorm1d(16), new ReLU(), new Dropout(0.5)];
  const net = new Sequential(...layers, new Linear(16, 3));
  const optimizer = new AdamW(net.parameters(), { lr: 0.05 });
  const sampler = new DistributedSampler(samples, { replicas: group.size, rank, seed: 4 });
  const loader = new DataLoader(dataset, { batchSize: 4, sampler });
  const tensor = ({ data, shape }: SnapshotTensor) => fromHost(data as Float32Array, [...shape]);
  const saved = await loadSnapshot<Saved>(file, group, { tensor });
  if (saved) {
    net.loadStateDict(saved.model);
    optimizer.loadStateDict(saved.optimizer);
    loader.load(saved.loader);
    rng.setState(saved.rng);
  }
  using model = await ddp(net, { group });
  epochs: for (let epoch = saved?.loader.epoch ?? 0; epoch < 3; epoch++) {
    sampler.setEpoch(epoch);
    for await (const { x, y } of loader) {
      optimizer.zeroGrad();
      scope(() => crossEntropy(model.forward(fromHost(x.data, x.shape)), fromHost(y.data)).backward());
      optimizer.step();
      if (--steps === 0) break epochs;
    }
  }
  const state = { model: net.stateDict(), optimizer: optimizer.stateDict(), loader: loader.state() };
  await saveSnapshot(file, { ...state, rng: rng.state() }, group);
  await assertInSync(model, group);
  const bits = net.parameters().map((parameter) => (parameter.dataSync() as Float32Array).slice());
  return { bits, rng: { ...rng.state() } };
}

/** Calls saveSnapshot on rank 0 only. The other ranks go on with the next step. */
export async function saveOnRankZero(rank: number, file: string) {
  await using group = await init();
  const net = new Sequential(new Linear(2, 2));
  const model = await ddp(net, { group });
  if (rank === 0) await saveSnapshot(file, { model: model.stateDict() }, group);
  model
    .forward(fromHost(Float32Array.of(1, 2), [1, 2]))
    .sum()
    .backward();
}
