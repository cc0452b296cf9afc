// With `rebuild: true`, buckets are laid out again after the first backward, in the order in which rank 0 got the
// gradients.
import { expect, it } from 'vitest';
import { ddp } from '../../../src/index.ts';
import { onRanks, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const paramsOf = (model: { plan: readonly { slots: readonly { param: number }[] }[] }) =>
  model.plan.map((bucket) => bucket.slots.map(({ param }) => param));

it('takes over the order of rank 0 after the first backward, once, and keeps the gradients', async () => {
  const ranks = values(
    await onRanks(3, async (group) => {
      // Each rank reports in another order, and none in the order of the first layout.
      let turn = group.rank + 1;
      const rotate = <T>(list: T[]) => [...list.slice(turn), ...list.slice(0, turn)];
      const net = new TinyMlp(1, { reportOrder: rotate });
      const plainNet = new TinyMlp(1);
      const model = await ddp(net, { group, bucketBytes: 1, rebuild: true });
      const plainModel = await ddp(plainNet, { group, bucketBytes: 1 });
      const layouts = [paramsOf(model)];
      const gradients = [];
      for (let step = 0; step < 3; step++) {
        for (const each of [net, plainNet]) {
          each.autograd.zeroGrad();
          each.loss(3 * step + group.rank, 1);
          each.autograd.backward();
          await (each === net ? model : plainModel).finish();
        }
        layouts.push(paramsOf(model));
        gradients.push([net.gradients(), plainNet.gradients()] as const);
        turn++;
      }
      return { layouts, gradients };
    }),
  );
  const [{ layouts }] = ranks as [(typeof ranks)[0]];
  expect(layouts[0]).toEqual([[5], [4], [3], [2], [1], [0]]);
  // Rank 0 reported w2, b1, w1, b0, w0, b2 in this order, and later others.
  expect(layouts.slice(1)).toEqual(Array(3).fill([[4], [3], [2], [1], [0], [5]]));
  for (const rank of ranks) {
    expect(rank.layouts).toEqual(layouts);
    for (const [rebuilt, plain] of rank.gradients) expect(rebuilt).toEqual(plain);
  }
});

it('fills buckets in the order of arrival when that is not the reverse of definition', async () => {
  const ranks = values(
    await onRanks(2, async (group) => {
      const forwards = <T>(list: T[]) => (group.rank === 0 ? [...list].reverse() : list);
      const net = new TinyMlp(1, { reportOrder: forwards });
      const model = await ddp(net, { group, bucketBytes: 100, firstBucketBytes: 100, rebuild: true });
      const before = paramsOf(model);
      net.loss(group.rank, 1);
      net.autograd.backward();
      await model.finish();
      const grads = net.gradients();
      net.autograd.zeroGrad();
      net.loss(group.rank, 1);
      net.autograd.backward();
      await model.finish();
      expect(net.gradients()).toEqual(grads);
      return { before, after: paramsOf(model) };
    }),
  );
  for (const { before, after } of ranks) {
    expect(before.flat()).toEqual([5, 4, 3, 2, 1, 0]);
    expect(after.flat()).toEqual([0, 1, 2, 3, 4, 5]);
  }
});
