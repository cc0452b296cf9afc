// Race 23: with DiLoCo, the average of a fragment is on its way when the view ends: it is final on one rank and not on
// another one, or belongs to ranks that are not there any more. No average is applied twice, and none is left out.
import { loopbackGroups } from '@ringwise/collectives';
import { SGD } from '@ringwise/tensor/optim';
import { expect, it } from 'vitest';
import { diloco } from '../../../../src/index.ts';
import { values } from '../../../support/loopback.ts';
import { flat, largestDifference, makeNet, setEach } from '../../../support/net.ts';

const nesterov = (params: ConstructorParameters<typeof SGD>[0]) =>
  new SGD(params, { lr: 0.7, momentum: 0.9, nesterov: true });

/** Moves the parameters as an inner step would, differently on each rank. */
const move = (net: ReturnType<typeof makeNet>, by: number) =>
  setEach(net, (value, i) => value + by + (i % 3));

it('brings a rank that missed an average to the state of those that have applied it', async () => {
  const [before, after] = [
    loopbackGroups(2, { timeoutMs: 60_000 }),
    loopbackGroups(2, { timeoutMs: 60_000 }),
  ];
  const given = { every: 2, outer: nesterov } as const;
  const ends = await values(before, async (group) => {
    const net = makeNet();
    const outer = await diloco(net, { ...given, group });
    for (let i = 0; i < 4; i++) {
      move(net, group.rank + 0.5);
      await outer.step();
    }
    const torn = outer.stateDict();
    move(net, group.rank);
    await outer.step();
    move(net, group.rank);
    await outer.step();
    if (group.rank === 1) {
      outer.loadStateDict(torn); // takes the last average back
      move(net, 3);
    }
    await outer.change({ group: after[group.rank]! });
    const met = { averages: outer.averages, state: outer.stateDict().fragments };
    for (let i = 0; i < 2; i++) {
      move(net, group.rank);
      await outer.step();
    }
    return { met, net: group.rank === 0 ? flat(net) : null, steps: outer.steps };
  });
  expect(ends[1]!.met).toEqual(ends[0]!.met);
  expect(ends[0]!.met.averages).toBe(3);
  await Promise.all(after.map((group) => group.close()));
});

it('applies the average in flight if the members have decided so, and needs it to be complete', async () => {
  const [before, after] = [
    loopbackGroups(2, { timeoutMs: 60_000 }),
    loopbackGroups(2, { timeoutMs: 60_000 }),
  ];
  await values(before, async (group) => {
    const net = makeNet();
    const outer = await diloco(net, { group, every: 4, delay: 2, outer: 'average' });
    for (let i = 0; i < 4; i++) await outer.step();
    expect(outer.isPending).toBe(true);
    await expect(outer.change({ group: after[group.rank]!, decision: 'commit' })).rejects.toThrow(
      'change: the change says that the average in flight is final, but it is not complete on this rank; expected a decision that all members made together.',
    );
    await outer.change({ group: after[group.rank]!, decision: 'redo' });
    expect(outer.averages).toBe(0);
    await outer.step();
    await outer.step();
    expect(outer.averages).toBe(1);
  });
  await Promise.all(after.map((group) => group.close()));
});

it('drops the average of a lost rank: no rank of the next view receives it', async () => {
  const [before, after] = [
    loopbackGroups(3, { timeoutMs: 40_000 }),
    loopbackGroups(2, { timeoutMs: 40_000 }),
  ];
  const start = flat(makeNet());
  const ends = await values(before, async (group) => {
    const net = makeNet();
    const outer = await diloco(net, { group, every: 2, delay: 1, outer: 'average' });
    setEach(net, (value) => value + 10 ** group.rank);
    await outer.step();
    await outer.step(); // the average of all three is on its way
    expect(outer.isPending).toBe(true);
    if (group.rank === 2) {
      group.abort('lost');
      return null;
    }
    await outer.change({ group: after[group.rank]!, decision: 'redo' });
    await outer.step();
    return { net: flat(net), averages: outer.averages };
  });
  expect(ends[1]).toEqual(ends[0]);
  expect(ends[0]!.averages).toBe(1);
  // The mean of 1 and 10, without the 100 of the one that is gone.
  const expected = start.map((value) => value + 5.5);
  expect(largestDifference(ends[0]!.net, expected)).toBeLessThan(1e-3);
  await Promise.all(after.map((group) => group.close()));
});
