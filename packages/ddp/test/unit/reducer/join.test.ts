// Tests loops of different lengths inside join().
import { loopbackGroups } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { assertInSync, type DdpOptions, ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import type { TinyOptions } from '../../support/tiny-autograd.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

/** Trains with one sample for each step. Rank r has `steps[r]` steps. */
function train(steps: readonly number[], tiny: TinyOptions = {}, options: Partial<DdpOptions> = {}) {
  return onRanks(steps.length, async (group) => {
    const net = new TinyMlp(1, tiny);
    const model = await ddp(net, { group, bucketBytes: 100, ...options });
    const taken = await model.join(async () => {
      for (let step = 0; step < steps[group.rank]!; step++) {
        net.autograd.zeroGrad();
        net.loss(step * steps.length + group.rank, 1);
        net.autograd.backward();
        await model.finish();
        net.autograd.step(0.3);
      }
      return steps[group.rank];
    });
    expect(taken).toBe(steps[group.rank]);
    await assertInSync(net, group);
    return net.parameters();
  });
}

/** Trains the same in one process. Each step averages over the ranks that still have data. */
function alone(steps: readonly number[]): number[] {
  const net = new TinyMlp(1);
  for (let step = 0; step < Math.max(...steps); step++) {
    const live = [...steps.keys()].filter((rank) => step < steps[rank]!);
    net.autograd.zeroGrad();
    for (const rank of live) {
      net.loss(step * steps.length + rank, 1);
      net.autograd.backward(1 / live.length);
    }
    net.autograd.step(0.3);
  }
  return net.parameters();
}

const cases: Record<string, Parameters<typeof train>> = {
  'three ranks': [[2, 5, 3]],
  'a rank without any data': [[4, 0, 3]],
  'the last rank going on longest': [[1, 2, 3, 7]],
  'equal loops': [[3, 3]],
  'nobody having data': [[0, 0]],
  'a group of one': [[3]],
  'an autograd that does not bind gradients': [[2, 4], { binds: false }],
  "unused: 'skip'": [[2, 4], {}, { unused: 'skip' }],
  'buckets that are laid out anew': [[1, 4, 2], {}, { rebuild: true }],
  'a static graph': [[0, 4, 2], {}, { staticGraph: true }],
};
for (const [name, args] of Object.entries(cases))
  it(`${name}: trains as one process does, and ends with equal parameters`, async () => {
    const expected = alone(args[0]);
    for (const parameters of values(await train(...args)))
      expect(largestDifference(parameters, expected)).toBeLessThan(1e-5);
  });

it('ends with the state of rank 0 if no rank has data, also in a smaller group than before', async () => {
  const models = await Promise.all(
    loopbackGroups(3).map((group, rank) => ddp(new TinyMlp(rank), { group, bucketBytes: 100 })),
  );
  const steps = (model: (typeof models)[0], count: number) =>
    model.join(async () => {
      for (let step = 0; step < count; step++) {
        model.module.loss(step, 1);
        model.module.autograd.backward();
        await model.finish();
      }
    });
  await Promise.all(models.map((model, rank) => steps(model, rank))); // rank 2 trains longest
  const groups = loopbackGroups(2);
  await Promise.all(groups.map((group, rank) => models[rank]!.rebind(group)));
  await Promise.all(groups.map((_, rank) => steps(models[rank]!, 0)));
  expect(models[1]!.module.parameters()).toEqual(models[0]!.module.parameters());
});

it('lets an error out of the loop, and ends the others with it', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    await model.join(async () => {
      if (group.rank === 1) throw new Error('disk full');
      net.loss(0, 1);
      net.autograd.backward();
      await model.finish();
    });
  });
  const [other, faulty] = reasons(outcomes);
  expect(faulty!.message).toBe('disk full');
  expect(other).toMatchObject({ code: 'ERR_COLL_ABORTED', peers: [1] });
});

it('without join, a rank that leaves early is named to those that go on', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    for (let step = 0; step < 2 + group.rank; step++) {
      net.autograd.zeroGrad();
      net.loss(0, 1);
      net.autograd.backward();
      await model.finish();
    }
    await group.close();
  });
  expect(outcomes[0]!.status).toBe('fulfilled');
  expect(outcomes[1]).toMatchObject({ reason: { code: 'ERR_COLL_PEER_LOST', peers: [0] } });
});

it('refuses a join() inside another one, whose end would end both', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    for (let round = 0; round < 2; round++)
      await model.join(async () => {
        await expect(model.join(() => {})).rejects.toThrow(
          `join: another join() of this model runs on rank ${group.rank}; expected one at a time`,
        );
        for (let step = 0; step <= group.rank; step++) {
          net.loss(group.rank, 1);
          net.autograd.backward();
          await model.finish();
        }
      });
    await assertInSync(net, group);
  });
  values(outcomes);
});
