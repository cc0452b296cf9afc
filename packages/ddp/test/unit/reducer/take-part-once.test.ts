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

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, n) => sum + n, 0);

/**
 * Trains steps of which `steps` has the samples of each rank. Checks the averages against one rank with all samples.
 */
async function checkAverages(
  steps: readonly (readonly number[])[],
  {
    binds = true,
    unused = 'error',
    saysTotal = false,
  }: { binds?: boolean; unused?: 'error' | 'skip'; saysTotal?: boolean },
): Promise<void> {
  const ranks = values(
    await onRanks(3, async (group) => {
      const net = new TinyMlp(1, { binds });
      const model = await ddp(net, { group, bucketBytes: 100, unused });
      const gradients = [];
      for (const counts of steps) {
        const count = counts[group.rank]!;
        const said = saysTotal ? { total: sumOf(counts) } : {};
        net.autograd.zeroGrad();
        for (const weight of net.autograd.weights) weight.hasGrad = true; // its memory stays
        if (count === 0) await model.takePartOnce(said);
        else {
          net.loss(sumOf(counts.slice(0, group.rank)), count);
          model.addWeight(count, said);
          net.autograd.backward(count);
          await model.finish();
        }
        gradients.push(net.gradients().flat());
      }
      return gradients;
    }),
  );
  for (const [step, counts] of steps.entries()) {
    const net = new TinyMlp(1);
    net.loss(0, sumOf(counts));
    net.autograd.backward();
    const alone = net.gradients().flat();
    for (const rank of ranks) {
      expect(rank[step]).toEqual(ranks[0]![step]);
      for (const [i, value] of alone.entries()) expect(rank[step]![i]).toBeCloseTo(value, 6);
    }
  }
}

for (const unused of ['error', 'skip'] as const)
  for (const binds of [true, false])
    it(`averages over the ranks with data, with unused: '${unused}' and binds: ${binds}`, () =>
      checkAverages(shares, { unused, binds }));

it('averages with a total that all ranks know, with data on rank 0', async () => {
  const steps = shares.filter(([first]) => first! > 0);
  expect(steps).toHaveLength(2);
  await checkAverages(steps, { saysTotal: true });
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

it('is refused with gradients of noSync, which average() sends', async () => {
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      using model = await ddp(net, { group });
      model.noSync(() => {
        net.loss(2 * group.rank, 2);
        model.addWeight(2);
        net.autograd.backward(2);
      });
      if (group.rank === 0) {
        net.loss(4, 1);
        model.addWeight(1);
        net.autograd.backward(1);
        await model.finish();
      } else {
        await expect(model.takePartOnce()).rejects.toThrow(
          'takePartOnce: rank 1 has gradients of weight 2 from backwards inside noSync, which would not count; ' +
            'expected a rank without samples in this step. Call average(), which sends them.',
        );
        await model.average();
      }
      return net.gradients().flat();
    }),
  );
  const net = new TinyMlp(1);
  net.loss(0, 5);
  net.autograd.backward(1);
  const wanted = net.gradients().flat();
  for (const gradients of ranks)
    for (const [i, value] of gradients.entries()) expect(value).toBeCloseTo(wanted[i]!, 5);
});
