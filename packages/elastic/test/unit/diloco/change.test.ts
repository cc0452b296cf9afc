// Ranks that are lost and ranks that join, in groups of one process: what the others and the new ones have afterwards.
import { loopbackGroups } from '@ringwise/collectives';
import { SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import { type DilocoOptions, diloco } from '../../../src/index.ts';
import { values } from '../../support/loopback.ts';
import { flat, largestDifference, makeNet, setEach } from '../../support/net.ts';

type Net = ReturnType<typeof makeNet>;
type Given = Omit<DilocoOptions<Net>, 'group'>;

const nesterov = (params: ConstructorParameters<typeof SGD>[0]) =>
  new SGD(params, { lr: 0.7, momentum: 0.9, nesterov: true });

/** Moves the parameters as an inner step would, differently on each rank. */
const move = (net: Net, by: number) => setEach(net, (value, i) => value + by + (i % 3));

describe('change', () => {
  it('averages over the ranks that are there after one was lost in a round', async () => {
    const [before, after] = [
      loopbackGroups(3, { timeoutMs: 60_000 }),
      loopbackGroups(2, { timeoutMs: 60_000 }),
    ];
    const start = flat(makeNet());
    const ends = await values(before, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 2, outer: 'average' });
      move(net, 10 ** group.rank);
      await outer.step();
      if (group.rank === 1) {
        group.abort('lost');
        return null;
      }
      move(net, 10 ** group.rank);
      await expect(outer.step({ samples: group.rank + 1 })).rejects.toThrow(/lost/);
      await expect(outer.step()).rejects.toThrow(
        /^step: the last call failed and the averages in flight are not settled; expected change\(\)/,
      );
      const next = after[group.rank === 0 ? 0 : 1]!;
      const end = await outer.change({ group: next });
      expect(end).toEqual({ averaged: true, changes: [], hasLeft: false });
      expect([outer.group, outer.steps, outer.averages]).toEqual([next, 2, 1]);
      const first = flat(net);
      move(net, 1);
      await outer.step();
      move(net, 1);
      await outer.step();
      return [first, flat(net)];
    });
    // Ranks 0 and 2 have trained 2 and 4 samples, and have moved by 2 and 200.
    const expected = start.map((value, i) => value + (2 * 2 + 200 * 4) / 6 + 2 * (i % 3));
    expect(largestDifference(ends[0]![0]!, expected)).toBeLessThan(1e-3);
    expect(ends[2]).toEqual(ends[0]);
    await Promise.all(after.map((group) => group.close()));
  });

  const variants: Record<string, Given> = {
    'an outer optimizer': { every: 3, outer: nesterov },
    LocalSGD: { every: 3, outer: 'average' },
    'fragments on their way': { every: 4, fragments: 3, delay: 2, mix: 0.5, wire: 'int8', outer: nesterov },
  };
  for (const [name, given] of Object.entries(variants))
    it(`gives a rank that joins the global parameters and the outer state: ${name}`, async () => {
      const [before, after] = [
        loopbackGroups(2, { timeoutMs: 60_000 }),
        loopbackGroups(3, { timeoutMs: 60_000 }),
      ];
      const steps = 9;
      const joiner = async () => {
        const group = after[1]!; // ranks may join in between
        const net = makeNet(77);
        const outer = await diloco(net, { ...given, group });
        return await go(net, outer, 1, 8);
      };
      const go = async (
        net: Net,
        outer: Awaited<ReturnType<typeof diloco<Net>>>,
        rank: number,
        count: number,
      ) => {
        for (let i = 0; i < count; i++) {
          setEach(net, (value, k) => value + 0.01 * Math.sin(k + outer.steps + rank));
          await outer.step({ samples: 1 + rank });
        }
        await outer.finish();
        return { net: flat(net), steps: outer.steps, averages: outer.averages };
      };
      const ends = values(before, async (group) => {
        const net = makeNet();
        const outer = await diloco(net, { ...given, group });
        for (let i = 0; i < steps; i++) {
          move(net, 0.1 * group.rank);
          await outer.step();
        }
        expect(outer.isPending).toBe((given.delay ?? 0) > 0);
        await outer.change({ group: after[group.rank * 2]! });
        return await go(net, outer, group.rank * 2, 8);
      });
      const [joined, others] = await Promise.all([joiner(), ends]);
      const all = [...others, joined];
      for (const end of all) expect(end).toEqual(all[0]);
      await Promise.all(after.map((group) => group.close()));
    });

  it('refuses ranks that are at the same average with other global parameters', async () => {
    const [before, after] = [
      loopbackGroups(2, { timeoutMs: 60_000 }),
      loopbackGroups(2, { timeoutMs: 60_000 }),
    ];
    await values(before, async (group) => {
      const outer = await diloco(makeNet(), { group, every: 4, outer: 'average' });
      if (group.rank === 1) {
        const { own: _, ...state } = outer.stateDict();
        state.fragments[0]!.global[0]![0] = 9;
        outer.loadStateDict(state);
      }
      await expect(outer.change({ group: after[group.rank]! })).rejects.toThrow(
        /^change: the global parameters of fragment 0 differ between ranks: rank 0 has/,
      );
    });
    await Promise.all(after.map((group) => group.close()));
  });
});
