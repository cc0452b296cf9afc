// Tests frozen parameters: all ranks get those of rank 0 at the start, compare them, and never send them again.
import { loopbackGroups } from '@ringwise/collectives';
import { ones, scope } from '@ringwise/tensor';
import type { Linear } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import {
  assertInSync,
  type DdpOptions,
  ddp,
  type FrozenParam,
  frozenParamsSymbol,
  gradParamsSymbol,
  inSync,
} from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { flat, lossOf, makeNet } from '../../support/tensor-mlp.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

/** Returns a network whose frozen first layer has other values on each rank. */
function fineTuned(rank: number) {
  const net = makeNet(rank);
  (net.layers[0] as Linear).requiresGrad_(false);
  return net;
}

it('starts all ranks from the frozen parameters of rank 0, and trains as one process', async () => {
  const alone = fineTuned(0);
  const optimizer = new SGD(alone.parameters(), { lr: 0.1 });
  for (let step = 0; step < 3; step++) {
    optimizer.zeroGrad();
    scope(() => lossOf((x) => alone.forward(x), 8 * step, 8).backward());
    optimizer.step();
  }
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = fineTuned(group.rank);
      const model = await ddp(net, { group });
      const before = group.flightRecord().length;
      const optimizer = new SGD(net.parameters(), { lr: 0.1 });
      for (let step = 0; step < 3; step++) {
        optimizer.zeroGrad();
        scope(() => lossOf(model.forward, 8 * step + 4 * group.rank, 4).backward());
        await model.finish();
        optimizer.step();
      }
      const sent = group.flightRecord().length - before;
      await assertInSync(net, group);
      return { parameters: flat(net), sent };
    }),
  );
  expect(ranks[1]).toEqual(ranks[0]);
  expect(ranks[0]!.sent).toBe(3); // one bucket for each step, without frozen parameters
  for (const [i, value] of ranks[0]!.parameters.entries()) expect(value).toBeCloseTo(flat(alone)[i]!, 5);
});

it('is compared: a parameter that is frozen on one rank only is named, with that rank', async () => {
  const outcomes = await onRanks(3, async (group) => {
    const net = makeNet(0);
    if (group.rank === 1) net.namedParameters()[2]![1].requiresGrad = false;
    await ddp(net, { group });
  });
  for (const error of reasons(outcomes)) {
    expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', params: ['2.weight'], ranks: [1] });
    expect(error.message).toContain(
      'ranks 0, 2 have "2.weight" [float32 × 32 × 32]; rank 1 has "2.weight" [float32 × 32 × 32], frozen',
    );
  }
});

const cpu = { kind: 'cpu', index: 0 } as const;
const frozenParam = (name: string, ...shape: number[]): FrozenParam & { host: Float32Array } => {
  const count = shape.reduce((a, b) => a * b, 1);
  const host = new Float32Array(count);
  return { name, shape, host, value: { dtype: 'float32', count, device: cpu, host, handle: null } };
};
const withFrozen = (net: TinyMlp, frozen: FrozenParam[]) => ({
  [gradParamsSymbol]: () => net[gradParamsSymbol](),
  [frozenParamsSymbol]: () => frozen,
});

describe('frozen parameters of any autograd', () => {
  it('are given to all ranks and compared bit for bit', async () => {
    const answers = values(
      await onRanks(2, async (group) => {
        const frozen = frozenParam('base', 2, 3);
        frozen.host.fill(group.rank + 1);
        const model = withFrozen(new TinyMlp(1), [frozen]);
        await ddp(model, { group });
        const after = [...frozen.host];
        const were = await inSync(model, group);
        frozen.host[5]! += group.rank;
        return [after, were, await inSync(model, group)];
      }),
    );
    for (const answer of answers) expect(answer).toEqual([[1, 1, 1, 1, 1, 1], true, false]);
  });

  it('are named where shapes or names differ', async () => {
    const run = (make: (rank: number) => FrozenParam[]) =>
      onRanks(2, (group) => ddp(withFrozen(new TinyMlp(1), make(group.rank)), { group }));
    for (const error of reasons(await run((rank) => [frozenParam('base', 2, 3 + rank)])))
      expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', params: ['base'] });
    for (const error of reasons(await run((rank) => [frozenParam(`base${rank}`, 2)])))
      expect(error.message).toContain('rank 0 has "base0" [float32 × 2], frozen; rank 1 has "base1"');
    for (const error of reasons(await run(() => [frozenParam('w0', 2)])))
      expect(error.message).toContain('two parameters are named "w0"');
  });
});

it('refuses a model whose parameters are all frozen', async () => {
  const [group] = loopbackGroups(1);
  await expect(ddp(makeNet(0).requiresGrad_(false), { group: group! })).rejects.toThrow(
    'at least one parameter, got 6 frozen ones',
  );
  await group!.close();
});

describe('changed after ddp()', () => {
  const step = async (change: (net: ReturnType<typeof makeNet>) => void, options: Partial<DdpOptions> = {}) =>
    onRanks(2, async (group) => {
      const net = fineTuned(group.rank);
      const model = await ddp(net, { group, ...options });
      change(net);
      scope(() => lossOf(model.forward, 4 * group.rank, 4).backward());
      await model.finish();
      return net.parameters().map(({ grad }) => grad && [...(grad.dataSync() as Float32Array)]);
    });

  it('a frozen parameter that trains is refused instead of growing apart', async () => {
    const outcomes = await step((net) => net.requiresGrad_());
    for (const error of reasons(outcomes)) expect(error.message).toContain('"0.bias" got a gradient on rank');
    expect(reasons(outcomes)[0]).toMatchObject({ code: 'ERR_DDP_INVALID', params: ['0.bias'], ranks: [0] });
  });

  it('so is it where nothing else trains, and inside noSync', async () => {
    const outcomes = await onRanks(1, async (group) => {
      const net = fineTuned(0);
      const model = await ddp(net, { group });
      net.requiresGrad_(false);
      (net.layers[0] as Linear).requiresGrad_();
      model.noSync(() => scope(() => lossOf(model.forward, 0, 4).backward()));
    });
    expect(reasons(outcomes)[0]!.message).toMatch(/got a gradient.*it was frozen.*close\(\).*ddp\(\) again/);
  });

  for (const unused of ['zero', 'skip'] as const)
    it(`a parameter that is frozen later is named with unused: '${unused}'`, async () => {
      const outcomes = await step((net) => void (net.layers[2] as Linear).requiresGrad_(false), { unused });
      for (const error of reasons(outcomes)) {
        expect(error.message).toMatch(/"2\.weight" is frozen on rank \d, but it trained when ddp\(\)/);
      }
    });

  it('one that was frozen for a while goes on being averaged, as a discriminator does', async () => {
    const plain = values(await step(() => {}));
    const paused = values(
      await step((net) => {
        const last = net.layers[4] as Linear;
        last.requiresGrad_(false);
        scope(() => net.forward(ones([1, 20])));
        last.requiresGrad_();
      }),
    );
    expect(paused).toEqual(plain);
    expect(paused[1]).toEqual(paused[0]);
  });

  it('one that another wrapper averages meanwhile is left alone', async () => {
    const ranks = values(
      await onRanks(2, async (group) => {
        const net = fineTuned(group.rank);
        await ddp(net, { group });
        const base = (net.layers[0] as Linear).requiresGrad_();
        const model = await ddp(base, { group });
        scope(() =>
          base
            .forward(ones([1, 20]))
            .sum()
            .mul(group.rank)
            .backward(),
        );
        await model.finish();
        return [...(base.bias!.grad!.dataSync() as Float32Array)];
      }),
    );
    expect(ranks).toEqual([Array(32).fill(0.5), Array(32).fill(0.5)]);
  });
});
