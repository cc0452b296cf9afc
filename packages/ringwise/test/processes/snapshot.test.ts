// Tests that a run which stops in the middle of an epoch resumes from its snapshot, on the same or another number of
// ranks.
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Group, loopbackGroups } from '@ringwise/collectives';
import { ArrayDataset, DataLoader, DistributedSampler, type SamplerState } from '@ringwise/data';
import { ddp, loadSnapshot, type SnapshotTensor, saveSnapshot } from '@ringwise/ddp';
import {
  crossEntropy,
  fromHost,
  type GeneratorState,
  generator,
  manualSeed,
  scope,
  type Tensor,
} from '@ringwise/tensor';
import { Linear, ReLU, Sequential } from '@ringwise/tensor/nn';
import { AdamW, type OptimizerState } from '@ringwise/tensor/optim';
import { values, withRanks } from '@ringwise/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';

const samples = 60;
const width = 6;
const epochs = 3;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ringwise-run-'));
});
afterEach(() => rm(folder, { recursive: true }));

interface Saved {
  readonly model: Record<string, Tensor>;
  readonly optimizer: OptimizerState;
  readonly loader: SamplerState;
  readonly random: GeneratorState;
}

const dataset = new ArrayDataset({
  x: { data: Float32Array.from({ length: samples * width }, (_, i) => Math.cos(0.37 * i)), shape: [width] },
  y: { data: Int32Array.from({ length: samples }, (_, i) => i % 3), shape: [] },
  id: { data: Int32Array.from({ length: samples }, (_, i) => i), shape: [] },
});

const toTensor = ({ data, shape }: SnapshotTensor) => fromHost(data as Float32Array, [...shape]);

/**
 * Resumes from the snapshot in `file` if there is one, trains at most `steps` further steps, and saves a snapshot to
 * `file`. Collective. `batch` is the number of samples of all ranks together. Returns the ids of the samples that this
 * rank saw in each epoch, and the final parameters.
 */
async function train(group: Group, batch: number, file: string, steps = Infinity) {
  manualSeed(group.rank); // other parameters on each rank: ddp() broadcasts those of rank 0
  const net = new Sequential(new Linear(width, 8), new ReLU(), new Linear(8, 3));
  const optimizer = new AdamW(net.parameters(), { lr: 0.01, eps: 1e-4 });
  const sampler = new DistributedSampler(samples, { replicas: group.size, rank: group.rank, seed: 4 });
  const loader = new DataLoader(dataset, { batchSize: batch / group.size, sampler });
  const random = generator(5);
  const saved = await loadSnapshot<Saved>(file, group, { tensor: toTensor });
  if (saved) {
    net.loadStateDict(saved.model);
    optimizer.loadStateDict(saved.optimizer);
    loader.load(saved.loader);
    random.setState(saved.random);
  }
  using model = await ddp(net, { group });
  const seen: number[][] = Array.from({ length: epochs }, () => []);
  const factor = new Float32Array(1);
  loop: for (let epoch = saved?.loader.epoch ?? 0; epoch < epochs; epoch++) {
    sampler.setEpoch(epoch);
    for await (const { x, y, id } of loader) {
      seen[epoch]!.push(...id.data);
      // With random learning rates, the result is right only if the generator's state is restored, too.
      random.uniform(factor);
      optimizer.lr = 0.01 * factor[0]!;
      optimizer.zeroGrad();
      scope(() => crossEntropy(model.forward(fromHost(x.data, x.shape)), fromHost(y.data)).backward());
      await model.finish();
      optimizer.step();
      if (--steps === 0) break loop;
    }
  }
  const state = {
    model: net.stateDict(),
    optimizer: optimizer.stateDict(),
    loader: loader.state(),
    random: random.state(),
  };
  await saveSnapshot(file, state, group);
  const parameters = net.parameters().flatMap((parameter) => [...(parameter.dataSync() as Float32Array)]);
  return { seen, parameters };
}

async function onRanks(size: number, batch: number, file: string, steps?: number) {
  const groups = loopbackGroups(size);
  const ranks = await Promise.all(groups.map((group) => train(group, batch, file, steps)));
  await Promise.all(groups.map((group) => group.close()));
  return ranks;
}

it('stopped twice and resumed on another number of ranks, sees every sample once per epoch and ends like an undisturbed run', async () => {
  const batch = 12;
  const [whole] = await onRanks(1, batch, join(folder, 'uninterrupted'));
  const file = join(folder, 'stopped');
  // An epoch has 5 steps. The run stops 3 steps into the first epoch, then 2 into the second, then trains to the end.
  const parts = [
    await onRanks(4, batch, file, 3),
    await onRanks(2, batch, file, 4),
    await onRanks(3, batch, file),
  ];
  const all = Array.from({ length: samples }, (_, i) => i);
  for (let epoch = 0; epoch < epochs; epoch++) {
    const seen = parts.flat().flatMap((rank) => rank.seen[epoch]!);
    expect(seen.sort((a, b) => a - b)).toEqual(all);
  }
  expect(parts.map(([first]) => first!.seen.map(({ length }) => length))).toEqual([
    [9, 0, 0],
    [12, 12, 0],
    [0, 12, 20],
  ]);
  for (const { parameters } of parts[2]!) {
    expect(parameters).toEqual(parts[2]![0]!.parameters);
    const differences = parameters.map((value, i) => Math.abs(value - whole!.parameters[i]!));
    expect(Math.max(...differences)).toBeLessThan(1e-4);
  }
});

const module = new URL('../support/snapshot-ranks.ts', import.meta.url);
type Outcome = Awaited<ReturnType<typeof import('../support/snapshot-ranks.ts').train>>;
const run = async (size: number, file: string, steps?: number) =>
  values<Outcome>(
    await withRanks(size, module, 'train', { args: steps === undefined ? [file] : [file, steps] }),
  );

it('goes on bit for bit on two ranks, each with its own dropout', async () => {
  const whole = await run(2, join(folder, 'uninterrupted'));
  const file = join(folder, 'stopped');
  await run(2, file, 4); // stops in the middle of the first epoch
  await run(2, file, 3); // stops in the middle of the second epoch
  const resumed = await run(2, file);
  expect(resumed).toEqual(whole);
  expect(resumed[1]!.bits).toEqual(resumed[0]!.bits);
  expect(resumed[1]!.rng).not.toEqual(resumed[0]!.rng);
  // No temporary file is left.
  expect((await readdir(folder)).sort()).toEqual(['stopped', 'uninterrupted']);
});

it('resumes on three ranks, each with dropout of its own; resuming twice gives the same result', async () => {
  const file = join(folder, 'stopped');
  await run(2, file, 4);
  const copies = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const copy = join(folder, name);
      await copyFile(file, copy);
      return copy;
    }),
  );
  const [first, second] = [await run(3, copies[0]!), await run(3, copies[1]!)];
  expect(second).toEqual(first);
  expect(new Set(first.map(({ rng }) => rng.seed)).size).toBe(3);
  // Ranks 0 and 1 keep the seeds that snapshot-ranks.ts gave them, rank 2 gets a new one.
  expect(first.slice(0, 2).map(({ rng }) => rng.seed)).toEqual([7, 8]);
});

it('rejects on every rank, and writes no file, if only rank 0 saves', async () => {
  const ranks = await withRanks(2, module, 'saveOnRankZero', { args: [join(folder, 'alone')] });
  for (const { error } of ranks) {
    expect(error).toMatchObject({ code: 'ERR_DDP_SNAPSHOT' });
    expect(error!.message).toMatch(
      /^saveSnapshot: rank 0 called saveSnapshot \(seq \d+\) but rank 1 called allReduce .*It is collective/,
    );
  }
  expect(await readdir(folder)).toEqual([]);
});
