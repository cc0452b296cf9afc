// Tests staticGraph: a gradient may be reported several times in a backward, if it is the same number in each backward.
import { loopbackGroups } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const thrice = <T>(list: T[]) => [...list, list[0]!, list[0]!];

it('averages at the last report of each gradient, which the first backward has counted', async () => {
  const gradients = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1, { reportOrder: thrice });
      const model = await ddp(net, { group, bucketBytes: 1, staticGraph: true });
      const history = [];
      for (let step = 0; step < 3; step++) {
        net.autograd.zeroGrad();
        net.loss(2 * step + group.rank, 1);
        net.autograd.backward();
        await model.finish();
        history.push(net.gradients());
      }
      return history;
    }),
  );
  const alone = new TinyMlp(1);
  expect(gradients[1]).toEqual(gradients[0]);
  for (let step = 0; step < 3; step++) {
    alone.autograd.zeroGrad();
    alone.loss(2 * step, 2);
    alone.autograd.backward();
    expect(largestDifference(gradients[0]![step]!.flat(), alone.gradients().flat())).toBeLessThan(1e-6);
  }
});

it('takes the order of the last reports in the first backward as the order of arrival', async () => {
  // Each rank reports in the order of definition, and the first parameter twice more.
  const order = <T>(list: T[]) => thrice([...list].reverse());
  const plans = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1, { reportOrder: order });
      const model = await ddp(net, { group, bucketBytes: 1, staticGraph: true, rebuild: true });
      const step = async () => {
        net.autograd.zeroGrad();
        net.loss(group.rank, 1);
        net.autograd.backward();
        await model.finish();
        return model.statistics()!;
      };
      const first = await step();
      const plan = model.plan.flatMap(({ slots }) => slots.map(({ param }) => param));
      const second = await step();
      return { plan, orders: [first.arrivalOrder, second.arrivalOrder] };
    }),
  );
  const arrivals = ['b0', 'w1', 'b1', 'w2', 'b2', 'w0'];
  for (const { plan, orders } of plans) {
    expect(orders).toEqual([arrivals, arrivals]);
    expect(plan).toEqual([1, 2, 3, 4, 5, 0]);
  }
});

it('does not wait for parameters that the first backward left out', async () => {
  values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, bucketBytes: 1, staticGraph: true, unused: 'zero' });
      for (let step = 0; step < 2; step++) {
        net.autograd.zeroGrad();
        net.firstLayerLoss();
        net.autograd.backward();
        await model.finish();
      }
      expect(net.gradients()[2]!.every((value) => value === 0)).toBe(true);
    }),
  );
});

for (const [what, later] of [
  ['misses', (net: TinyMlp) => net.firstLayerLoss()],
  ['has more than', (net: TinyMlp) => net.loss(0, 1)],
] as const)
  it(`names the parameters when a later backward ${what} the first one`, async () => {
    const outcomes = await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, staticGraph: true, unused: 'zero' });
      for (const loss of what === 'misses'
        ? [() => net.loss(0, 1), later]
        : [() => net.firstLayerLoss(), later]) {
        net.autograd.zeroGrad();
        loss(net);
        net.autograd.backward();
        await model.finish();
      }
    });
    for (const error of reasons(outcomes))
      expect(['ERR_DDP_GRAPH', 'ERR_COLL_ABORTED']).toContain(error.code);
    const own = reasons(outcomes).find(({ code }) => code === 'ERR_DDP_GRAPH') as Error & {
      params: string[];
    };
    expect(own.params.every((name) => ['w1', 'b1', 'w2', 'b2'].includes(name))).toBe(true);
    expect(own.message).toContain('staticGraph');
  });

for (const first of ['average()', 'a backward'])
  it(`averages what noSync has accumulated, in any order with backwards, from ${first} on`, async () => {
    const ranks = values(
      await onRanks(2, async (group) => {
        const net = new TinyMlp(1, { reportOrder: thrice });
        const model = await ddp(net, { group, staticGraph: true });
        const history = [];
        for (let step = 0; step < 4; step++) {
          net.autograd.zeroGrad();
          net.loss(2 * step + group.rank, 1);
          // Only rank 0 calls average(), in every second step. The other rank runs a backward in each.
          if (group.rank === 0 && step % 2 === (first === 'average()' ? 0 : 1)) {
            model.noSync(() => net.autograd.backward());
            await model.average();
          } else {
            net.autograd.backward();
            await model.finish();
          }
          history.push(net.gradients().flat());
        }
        return history;
      }),
    );
    expect(ranks[1]).toEqual(ranks[0]);
    const alone = new TinyMlp(1);
    for (let step = 0; step < 4; step++) {
      alone.autograd.zeroGrad();
      alone.loss(2 * step, 2);
      alone.autograd.backward();
      expect(largestDifference(ranks[0]![step]!, alone.gradients().flat())).toBeLessThan(1e-6);
    }
  });

it('counts again after a first backward that did not end, in the next group', async () => {
  const [before, after] = [loopbackGroups(1)[0]!, loopbackGroups(1)[0]!];
  const report = { cut: true };
  const net = new TinyMlp(1, { reportOrder: (list) => (report.cut ? list.slice(0, 2) : list) });
  const model = await ddp(net, { group: before, staticGraph: true });
  net.loss(0, 1);
  expect(() => net.autograd.backward()).toThrow(expect.objectContaining({ code: 'ERR_DDP_UNUSED' }));
  report.cut = false;
  await model.rebind(after);
  for (let step = 0; step < 2; step++) {
    net.autograd.zeroGrad();
    net.loss(step, 1);
    net.autograd.backward();
    await model.finish();
  }
  expect(model.averages).toBe(2);
  await Promise.all([before.close(), after.close()]);
});
