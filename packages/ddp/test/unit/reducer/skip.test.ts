// Tests unused: 'skip'. A parameter that no rank has used gets no gradient; one that some have used gets the average.
import { expect, it } from 'vitest';
import { ddp, gradParamsSymbol } from '../../../src/index.ts';
import { largestDifference, onRanks, values } from '../../support/ranks.ts';
import type { TinyOptions } from '../../support/tiny-autograd.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const w1 = 2; // position of the second layer's matrix

function start(usesAll: (rank: number, step: number) => boolean, steps: number, tiny: TinyOptions = {}) {
  return onRanks(3, async (group) => {
    const net = new TinyMlp(1, tiny);
    const model = await ddp(net, { group, bucketBytes: 1, unused: 'skip' });
    const history = [];
    for (let step = 0; step < steps; step++) {
      net.autograd.zeroGrad();
      if (usesAll(group.rank, step)) net.loss(group.rank, 1);
      else net.firstLayerLoss();
      net.autograd.backward();
      const local = net.gradients();
      await model.finish();
      history.push({
        local,
        averaged: net.gradients(),
        isThere: net[gradParamsSymbol]().map(({ grad }) => grad !== null),
      });
    }
    return history;
  });
}

it('drops the gradients that no rank has used, on all ranks', async () => {
  for (const [step] of values(await start(() => false, 1))) {
    expect(step!.isThere).toEqual([true, true, false, false, false, false]);
    expect(step!.averaged[0]!.some((value) => value !== 0)).toBe(true);
  }
});

it('averages what some ranks have used over all of them', async () => {
  const [first, other, third] = values(await start((rank) => rank !== 1, 1)).map(([step]) => step!);
  expect(other!.averaged).toEqual(first!.averaged);
  expect(other!.isThere).toEqual([true, true, true, true, true, true]);
  const expected = first!.local[w1]!.map((value, i) => (value + third!.local[w1]![i]!) / 3);
  expect(largestDifference(first!.averaged[w1]!, expected)).toBeLessThan(1e-6);
});

it('takes a dropped gradient back into its bucket when it is used again', async () => {
  const [first, other] = values(await start((_, step) => step === 1, 3));
  expect(first!.map(({ isThere }) => isThere[w1])).toEqual([false, true, false]);
  expect(other![1]!.averaged).toEqual(first![1]!.averaged);
  expect(first![1]!.averaged[w1]!.some((value) => value !== 0)).toBe(true);
});

it('needs no memory for what no rank uses from an autograd that cannot bind', async () => {
  for (const [step] of values(await start(() => false, 1, { binds: false })))
    expect(step!.isThere).toEqual([true, true, false, false, false, false]);
});

it('is an error where there is no memory for the average of the others', async () => {
  const [first, faulty] = await start((rank) => rank !== 1, 1, { binds: false });
  expect(first!.status).toBe('fulfilled'); // this rank needs nothing more, so only its next call fails
  expect(faulty).toMatchObject({ reason: { code: 'ERR_DDP_UNUSED', params: ['w1'], ranks: [1] } });
});
