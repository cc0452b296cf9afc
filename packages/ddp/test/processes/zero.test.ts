// Tests ZeRO stage 1, which spreads the state of the optimizer over the ranks.
import { scope } from '@ringwise/tensor';
import { AdamW } from '@ringwise/tensor/optim';
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { type ConsolidatedState, clipShardedGradients, ZeroRedundancyOptimizer } from '../../src/index.ts';
import { stateOf, steps, type trainSharded } from '../fixtures/cnn.ts';
import { largestDifference, onRanks, values as valuesOf } from '../support/ranks.ts';
import { lossOf, makeNet } from '../support/tensor-mlp.ts';

const fixture = new URL('../fixtures/cnn.ts', import.meta.url);
type Trained = Awaited<ReturnType<typeof trainSharded>>;

const run = async (size: number, resumed: ConsolidatedState | null = null) =>
  values<Trained>(await withRanks(size, fixture, 'trainSharded', { args: [resumed] }));

function alone() {
  const net = makeNet(0);
  const optimizer = new AdamW(net.parameters(), { lr: 0.01 });
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => lossOf((x) => net.forward(x), 12 * step, 12).backward());
    optimizer.step();
  }
  return { net, state: optimizer.stateDict() };
}

it('trains as one process, remembers each parameter on one rank only, and gives the whole state back', async () => {
  const { net, state } = alone();
  const names = Object.keys(state.tensors).sort();
  const total = Object.values(state.tensors).reduce((sum, { count }) => sum + count, 0);
  for (const size of [1, 2, 3, 4]) {
    const ranks = await run(size);
    for (const { parameters } of ranks) {
      expect(parameters).toEqual(ranks[0]!.parameters);
      expect(largestDifference(parameters, stateOf(net))).toBeLessThan(2e-4);
    }
    expect(ranks.reduce((sum, { rememberedElements }) => sum + rememberedElements, 0)).toBe(total);
    if (size > 1) for (const rank of ranks) expect(rank.rememberedElements).toBeLessThan(total);
    const whole = ranks[0]!.state!;
    expect(whole.steps).toEqual(state.steps);
    expect(Object.keys(whole.tensors).sort()).toEqual(names);
    for (const name of names) {
      const { data, shape } = whole.tensors[name]!;
      expect(shape).toEqual([...state.tensors[name]!.shape]);
      expect(
        largestDifference(data as Float32Array, state.tensors[name]!.dataSync() as Float32Array),
      ).toBeLessThan(1e-4);
    }
  }
});

it('goes on from a consolidated state at another world size', async () => {
  const [{ state }] = (await run(3)) as [Trained];
  const again = await run(2, state);
  expect(again[0]!.state!.steps).toEqual(state!.steps.map((taken) => 2 * taken));
});

it('deals whole parameters out, the largest first, each to the rank that has the least', async () => {
  const shards = valuesOf(
    await onRanks(2, async (group) => {
      const params = [5, 1, 3, 4].map((count) => {
        const host = new Float32Array(count);
        const view = {
          dtype: 'float32',
          count,
          device: { kind: 'cpu', index: 0 },
          host,
          handle: null,
        } as const;
        return { host, [Symbol.for('ringwise.buffer') as never]: () => view };
      });
      const optimizer = new ZeroRedundancyOptimizer(params as never[], group, (shard) => ({
        step: () => {
          for (const { host } of shard as { host: Float32Array }[]) host.fill(1 + group.rank);
        },
        stateDict: () => ({ groups: [], steps: [], tensors: {} }),
      }));
      await optimizer.stepAsync();
      expect(() => optimizer.stateDict()).toThrow('consolidateStateDict');
      return { shards: optimizer.shards, values: params.map(({ host }) => host[0]) };
    }),
  );
  for (const rank of shards) {
    expect(rank.shards).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect(rank.values).toEqual([1, 1, 2, 2]);
  }
});

it('clips gradients by the norm of all shards together', async () => {
  const clipped = valuesOf(
    await onRanks(2, async (group) => {
      const gradient = group.rank === 0 ? Float32Array.of(3, 0) : Float32Array.of(0, 4);
      const before = await clipShardedGradients([gradient], 10, group);
      const unchanged = [...gradient];
      const norm = await clipShardedGradients([gradient], 1, group);
      return { before, unchanged, norm, gradient: [...gradient] };
    }),
  );
  expect(clipped.map(({ before, norm }) => [before, norm])).toEqual([
    [5, 5],
    [5, 5],
  ]);
  expect(clipped.map(({ unchanged }) => unchanged)).toEqual([
    [3, 0],
    [0, 4],
  ]);
  expect(
    largestDifference(
      clipped.flatMap(({ gradient }) => gradient),
      [0.6, 0, 0, 0.8],
    ),
  ).toBeLessThan(1e-6);
});
