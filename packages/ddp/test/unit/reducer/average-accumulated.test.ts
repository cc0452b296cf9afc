// Averages what noSync has accumulated, without another backward, in turn with ranks that run one.
import { expect, it } from 'vitest';
import { ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

for (const binds of [true, false])
  for (const size of [1, 3])
    it(`is the gradient of the joined batch on ${size} ranks, with binds: ${binds}`, async () => {
      // Each rank takes 4 samples by 2, and the last rank one more, alone, which counts half as much.
      const ranks = values(
        await onRanks(size, async (group) => {
          const net = new TinyMlp(1, { binds });
          const model = await ddp(net, { group, bucketBytes: 100 });
          const backward = (from: number, count: number) =>
            model.noSync(() => {
              net.loss(from, count);
              net.autograd.backward();
            });
          const isLast = group.rank === size - 1;
          if (isLast) {
            backward(4 * size, 1);
            model.divideAccumulated(2);
          }
          backward(4 * group.rank, 2);
          model.addWeight(isLast ? 2.5 : 2);
          if (group.rank === 0) {
            backward(4 * group.rank + 2, 2);
            await model.average();
          } else {
            net.loss(4 * group.rank + 2, 2);
            net.autograd.backward();
            await model.finish();
          }
          expect(model.averages).toBe(1);
          return net.gradients().flat();
        }),
      );
      const net = new TinyMlp(1);
      net.loss(0, 4 * size + 1);
      net.autograd.backward();
      for (const gradients of ranks) {
        expect(gradients).toEqual(ranks[0]);
        expect(largestDifference(gradients, net.gradients().flat())).toBeLessThan(1e-6);
      }
    });

it('says which parameters got no gradient', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    model.noSync(() => {
      net.firstLayerLoss();
      net.autograd.backward();
    });
    await model.average();
  });
  expect(reasons(outcomes)[0]).toMatchObject({ code: 'ERR_DDP_UNUSED', params: ['w1', 'b1', 'w2', 'b2'] });
});
