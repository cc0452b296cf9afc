// Tests @ringwise/tensor as the autograd. All ranks share its engine here and must not block, so finish() is awaited.
import { scope } from '@ringwise/tensor';
import { SGD } from '@ringwise/tensor/optim';
import { expect, it } from 'vitest';
import { assertInSync, ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, values } from '../../support/ranks.ts';
import { flat, lossOf, makeNet } from '../../support/tensor-mlp.ts';

const steps = 5;
const batch = 3;

it('a model of @ringwise/tensor trains on four ranks as on one, step by step', async () => {
  const alone = makeNet(0);
  const optimizer = new SGD(alone.parameters(), { lr: 0.3, momentum: 0.9 });
  const expected: number[] = [];
  for (let step = 0; step < steps; step++) {
    optimizer.zeroGrad();
    scope(() => lossOf((x) => alone.forward(x), step * 4 * batch, 4 * batch).backward());
    optimizer.step();
    expected.push(...flat(alone));
  }
  const histories = values(
    await onRanks(4, async (group) => {
      const net = makeNet(group.rank);
      const model = await ddp(net, { group, bucketBytes: 512 });
      const optimizer = new SGD(net.parameters(), { lr: 0.3, momentum: 0.9 });
      const history: number[] = [];
      for (let step = 0; step < steps; step++) {
        optimizer.zeroGrad();
        scope(() => lossOf(model.forward, (step * 4 + group.rank) * batch, batch).backward());
        await model.finish();
        optimizer.step();
        history.push(...flat(net));
      }
      await assertInSync(net, group);
      return history;
    }),
  );
  for (const history of histories) {
    expect(history).toEqual(histories[0]);
    expect(largestDifference(history, expected)).toBeLessThan(1e-5);
  }
});
