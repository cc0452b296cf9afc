// Tests parameters that a backward did not reach.
import { manualSeed, ones } from '@ringwise/tensor';
import { init, Linear, Sequential } from '@ringwise/tensor/nn';
import { AdamW } from '@ringwise/tensor/optim';
import { expect, it } from 'vitest';
import { type DdpOptions, ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import type { TinyOptions } from '../../support/tiny-autograd.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const w1 = 2; // position of the second layer's matrix

/** Runs one step of three ranks, some of which use the first layer only. */
function step(
  options: TinyOptions,
  unused: DdpOptions['unused'] & string,
  skipsOn: (rank: number) => boolean,
) {
  return onRanks(3, async (group) => {
    const net = new TinyMlp(1, options);
    const model = await ddp(net, { group, bucketBytes: 1, unused });
    if (skipsOn(group.rank)) net.firstLayerLoss();
    else net.loss(group.rank, 1);
    net.autograd.backward();
    const local = net.gradients();
    await model.finish();
    return { local, averaged: net.gradients() };
  });
}

for (const [moment, tellsEnd] of [
  ['at the end of backward', true],
  ['in finish()', false],
] as const)
  it(`are named ${moment}, and the other ranks are told`, async () => {
    const [first, faulty, third] = reasons(await step({ tellsEnd }, 'error', (rank) => rank === 1));
    expect(faulty).toMatchObject({ code: 'ERR_DDP_UNUSED', params: ['w1', 'b1', 'w2', 'b2'], ranks: [1] });
    for (const error of [first, third]) {
      expect(error).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [1], secondary: true });
      expect(error!.message).toContain('4 of 6 parameters got no gradient on rank 1: "w1", "b1", "w2", "b2"');
    }
  });

it('fail the group, so that a later backward does not pass for averaged', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    const backward = async () => {
      net.autograd.backward();
      await model.finish();
    };
    net.firstLayerLoss();
    await expect(backward()).rejects.toThrow('4 of 6 parameters');
    net.loss(0, 1, model.forward);
    await backward();
  });
  for (const error of reasons(outcomes)) expect(error.code).toBe('ERR_COLL_ABORTED');
});

it("count as zero and get the average with unused: 'zero'", async () => {
  const [first, other, third] = values(await step({}, 'zero', (rank) => rank === 1));
  expect(other!.averaged[w1]).toEqual(first!.averaged[w1]);
  const expected = first!.local[w1]!.map((value, i) => (value + third!.local[w1]![i]!) / 3);
  expect(largestDifference(first!.averaged[w1]!, expected)).toBeLessThan(1e-6);
});

it('stay zero when no rank uses them', async () => {
  const [first] = values(await step({}, 'zero', () => true));
  expect(first!.averaged[w1]!.every((value) => value === 0)).toBe(true);
  expect(first!.averaged[0]!.some((value) => value !== 0)).toBe(true);
});

it('are an error when there is no memory for the average', async () => {
  const [first, faulty] = reasons(await step({ binds: false }, 'zero', (rank) => rank === 1));
  expect(faulty).toMatchObject({ code: 'ERR_DDP_UNUSED', ranks: [1] });
  expect(faulty!.message).toContain('no memory to receive the average');
  expect(first).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [1] });
});

it('contribute what noSync has accumulated', async () => {
  const [first, other] = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, unused: 'zero' });
      model.noSync(() => {
        net.loss(group.rank, 1);
        net.autograd.backward();
      });
      const accumulated = net.gradients()[w1]!;
      net.firstLayerLoss();
      net.autograd.backward();
      await model.finish();
      return { accumulated, averaged: net.gradients()[w1]! };
    }),
  );
  const expected = first!.accumulated.map((value, i) => (value + other!.accumulated[i]!) / 2);
  expect(largestDifference(first!.averaged, expected)).toBeLessThan(1e-6);
});

it('are ignored in a backward that reached none of them: it was of another model', async () => {
  values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group });
      net.autograd.backward();
      await model.finish();
    }),
  );
});

it.each([1, 2])(
  "are zero with unused: 'zero' on %i ranks, so that an optimizer's weight decay reaches them",
  async (size) => {
    const answers = values(
      await onRanks(size, async (group) => {
        manualSeed(1);
        const used = new Linear(2, 1);
        const idle = new Linear(2, 1);
        const net = new Sequential(used, idle);
        init.ones_(idle.weight);
        const model = await ddp(net, { group, unused: 'zero' });
        const optimizer = new AdamW(net.parameters(), { lr: 0.5, weightDecay: 1 });
        const gradients: unknown[] = [];
        for (let step = 0; step < 2; step++) {
          optimizer.zeroGrad();
          used
            .forward(ones([1, 2]))
            .sum()
            .backward();
          await model.finish();
          gradients.push(idle.weight.grad?.toArray());
          optimizer.step();
        }
        return { gradients, weight: idle.weight.toArray() };
      }),
    );
    for (const answer of answers)
      expect(answer).toEqual({ gradients: [[[0, 0]], [[0, 0]]], weight: [[0.25, 0.25]] });
  },
);
