// A rank without samples takes part in one averaged backward with weight 0, in turn with backwards of its own.
import { expect, it } from 'vitest';
import { ddp } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const shares = [
  [2, 1, 0],
  [0, 3, 1],
  [0, 0, 4],
  [1, 0, 0],
];

for (const unused of ['error', 'skip'] as const)
  for (const binds of [true, false])
    it(`averages over the ranks with data, with unused: '${unused}' and binds: ${binds}`, async () => {
      const ranks = values(
        await onRanks(3, async (group) => {
          const net = new TinyMlp(1, { binds });
          const model = await ddp(net, { group, bucketBytes: 100, unused });
          const steps = [];
          for (const counts of shares) {
            const count = counts[group.rank]!;
            const at = counts.slice(0, group.rank).reduce((sum, n) => sum + n, 0);
            net.autograd.zeroGrad();
            for (const weight of net.autograd.weights) weight.hasGrad = true; // its memory stays
            if (count === 0) await model.takePartOnce();
            else {
              net.loss(at, count);
              model.addWeight(count);
              net.autograd.backward(count);
              await model.finish();
            }
            steps.push(net.gradients().flat());
          }
          return steps;
        }),
      );
      for (const [step, counts] of shares.entries()) {
        const net = new TinyMlp(1);
        net.loss(
          0,
          counts.reduce((sum, n) => sum + n, 0),
        );
        net.autograd.backward();
        const alone = net.gradients().flat();
        for (const rank of ranks) {
          expect(rank[step]).toEqual(ranks[0]![step]);
          for (const [i, value] of alone.entries()) expect(rank[step]![i]).toBeCloseTo(value, 6);
        }
      }
    });

it('averages with a total that all ranks know', async () => {
  const ranks = values(
    await onRanks(3, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, bucketBytes: 100 });
      const steps = [];
      for (const counts of shares.filter(([first]) => first! > 0)) {
        const total = counts.reduce((sum, n) => sum + n, 0);
        const at = counts.slice(0, group.rank).reduce((sum, n) => sum + n, 0);
        net.autograd.zeroGrad();
        for (const weight of net.autograd.weights) weight.hasGrad = true;
        const count = counts[group.rank]!;
        if (count === 0) await model.takePartOnce({ total });
        else {
          net.loss(at, count);
          model.addWeight(count, { total });
          net.autograd.backward(count);
          await model.finish();
        }
        const alone = new TinyMlp(1);
        alone.loss(0, total);
        alone.autograd.backward();
        const wanted = alone.gradients().flat();
        steps.push(
          Math.max(
            ...net
              .gradients()
              .flat()
              .map((value, i) => Math.abs(value - wanted[i]!)),
          ),
        );
      }
      return steps;
    }),
  );
  expect(ranks).toHaveLength(3);
  for (const steps of ranks) {
    expect(steps).toHaveLength(2);
    for (const difference of steps) expect(difference).toBeLessThan(1e-6);
  }
});

it('is refused if a gradient has no memory for the averages', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1, { binds: false });
    const model = await ddp(net, { group });
    if (group.rank === 1) return await model.takePartOnce();
    model.addWeight(1);
    net.loss(0, 1);
    net.autograd.backward();
    await model.finish();
  });
  const [other, own] = reasons(outcomes);
  expect(own).toMatchObject({ code: 'ERR_DDP_UNUSED' });
  expect(other).toMatchObject({ code: 'ERR_COLL_ABORTED' });
});
