// What the parameters are after averages: compared with DDP, with averages made by hand, and with the formulas of the
// papers.
import { ddp } from '@ringwise/ddp';
import { SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import { diloco, type OuterOptimizer } from '../../../src/index.ts';
import { onRanks } from '../../support/loopback.ts';
import { flat, largestDifference, lossOf, makeNet, setEach } from '../../support/net.ts';

const nesterov = (params: ConstructorParameters<typeof SGD>[0]) =>
  new SGD(params, { lr: 0.7, momentum: 0.9, nesterov: true });

describe('diloco', () => {
  it('equals ddp up to rounding if it averages after every step of SGD and steps all the way', async () => {
    const size = 3;
    const train = (kind: 'ddp' | 'average' | 'sgd') =>
      onRanks(size, async (group) => {
        const net = makeNet();
        const inner = new SGD(net.parameters(), { lr: 0.1 });
        const outer =
          kind === 'ddp'
            ? await ddp(net, { group })
            : await diloco(net, {
                group,
                every: 1,
                outer: kind === 'average' ? kind : (params) => new SGD(params, { lr: 1 }),
              });
        for (let step = 0; step < 12; step++) {
          net.zeroGrad();
          lossOf((x) => net.forward(x), (step * size + group.rank) * 5, 5).backward();
          if ('finish' in outer && !('step' in outer)) await outer.finish();
          inner.step();
          if ('step' in outer) await outer.step();
        }
        return flat(net);
      });
    const [expected, average, sgd] = [await train('ddp'), await train('average'), await train('sgd')];
    const before = flat(makeNet());
    expect(largestDifference(expected[0]!, before)).toBeGreaterThan(0.01);
    for (const ranks of [average, sgd]) {
      for (const rank of ranks) expect(rank).toEqual(ranks[0]);
      expect(largestDifference(ranks[0]!, expected[0]!)).toBeLessThan(1e-5);
    }
  });

  it("sets all ranks to the average of their parameters with 'average', weighted by samples", async () => {
    const start = flat(makeNet());
    const ranks = await onRanks(3, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 2, outer: 'average' });
      setEach(net, (value, i) => value + group.rank + (i % 5));
      expect((await outer.step({ samples: group.rank })).averaged).toBe(false);
      setEach(net, (value) => value + 1);
      expect((await outer.step({ samples: 1 })).averaged).toBe(true);
      return flat(net);
    });
    // Weights 1, 2 and 3 of the ranks, which have moved by rank + i % 5 + 1.
    const expected = start.map((value, i) => value + (0 * 1 + 1 * 2 + 2 * 3) / 6 + (i % 5) + 1);
    for (const rank of ranks) {
      expect(rank).toEqual(ranks[0]);
      expect(largestDifference(rank, expected)).toBeLessThan(1e-5);
    }
  });

  it('leaves parameters and momentum alone in a round in which no rank has trained', async () => {
    await onRanks(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 1, outer: nesterov });
      setEach(net, (value) => value + 1);
      await outer.step();
      const after = flat(net);
      const end = await outer.step({ samples: 0 });
      expect(end.averaged).toBe(true);
      expect(flat(net)).toEqual(after);
    });
  });

  it('takes the outer step of Nesterov', async () => {
    const moves = [1, 3, -2]; // how far rank 0 moves in each round; rank 1 moves twice as far
    const ranks = await onRanks(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 4, outer: nesterov });
      const seen: Float32Array[] = [];
      for (const move of moves) {
        for (let step = 0; step < 4; step++) {
          setEach(net, (value) => value + (move * (group.rank + 1)) / 4);
          await outer.step({ samples: 8 });
        }
        seen.push(flat(net));
      }
      return seen;
    });
    let expected = flat(makeNet());
    let momentum = 0;
    for (const [round, move] of moves.entries()) {
      const gradient = -1.5 * move;
      momentum = round === 0 ? gradient : 0.9 * momentum + gradient;
      expected = expected.map((value) => value - 0.7 * (gradient + 0.9 * momentum));
      expect(largestDifference(ranks[0]![round]!, expected)).toBeLessThan(1e-5);
      expect(ranks[1]![round]).toEqual(ranks[0]![round]);
    }
  });

  it('equals the unfragmented average where the fragments have the same turns', async () => {
    const train = (fragments: number) =>
      onRanks(2, async (group) => {
        const net = makeNet();
        const inner = new SGD(net.parameters(), { lr: 0.1, momentum: 0.9 });
        const outer = await diloco(net, { group, inner, every: 1, fragments, outer: nesterov });
        expect(outer.plan).toHaveLength(fragments);
        for (let step = 0; step < 6; step++) {
          net.zeroGrad();
          lossOf((x) => net.forward(x), (step * 2 + group.rank) * 5, 5).backward();
          await outer.step({ samples: 5 });
        }
        return flat(net);
      });
    const [one, three] = [await train(1), await train(3)];
    expect(three).toEqual(one);
  });

  it('lets each fragment travel for `delay` steps, and mixes what arrives with the local values', async () => {
    // Two fragments with turns at steps 2 and 4 of a round of 4. Rank r moves by r + 1 in each step.
    const mix = 0.25;
    const delay = 1;
    const ranks = await onRanks(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 4, fragments: 2, delay, mix, outer: 'average' });
      const counts = outer.plan.map((names) => {
        const sizes = new Map(net.namedParameters().map(([name, { count }]) => [name, count]));
        return names.reduce((sum, name) => sum + sizes.get(name)!, 0);
      });
      const seen: Float32Array[] = [];
      const averaged: boolean[] = [];
      for (let step = 0; step < 8; step++) {
        setEach(net, (value) => value + group.rank + 1);
        averaged.push((await outer.step()).averaged);
        seen.push(flat(net));
      }
      return { seen, averaged, counts };
    });
    const start = flat(makeNet());
    const first = ranks[0]!.counts[0]!;
    expect(ranks[0]!.averaged).toEqual([false, false, true, false, true, false, true, false]);
    for (const [fragment, turn] of [2, 4].entries()) {
      const element = fragment === 0 ? 0 : first;
      const local = [start[element]!, start[element]!];
      let global = start[element]!;
      let travelling = 0;
      for (let step = 1; step <= 8; step++) {
        for (const rank of [0, 1]) local[rank] = local[rank]! + rank + 1;
        if (step % 4 === (turn + delay) % 4 && step > turn) {
          global -= travelling;
          for (const rank of [0, 1]) local[rank] = mix * local[rank]! + (1 - mix) * global;
        }
        if (step % 4 === turn % 4) travelling = global - (local[0]! + local[1]!) / 2;
        for (const rank of [0, 1]) expect(ranks[rank]!.seen[step - 1]![element]).toBeCloseTo(local[rank]!, 4);
      }
    }
  });

  it('ends with equal parameters on all ranks by finish(), and goes on afterwards', async () => {
    const ranks = await onRanks(3, async (group) => {
      const net = makeNet();
      const options = { every: 6, fragments: 3, delay: 2, mix: 0.5, outer: 'average' } as const;
      const outer = await diloco(net, { group, ...options });
      for (let step = 0; step < 8; step++) {
        setEach(net, (value, i) => value + Math.sin(i + step + group.rank));
        await outer.step();
      }
      expect(outer.isPending).toBe(true);
      await outer.finish();
      expect(outer.isPending).toBe(false);
      const end = flat(net);
      for (let step = 0; step < 6; step++) {
        setEach(net, (value) => value + group.rank);
        await outer.step();
      }
      await outer.finish();
      return [end, flat(net)];
    });
    for (const rank of ranks) expect(rank).toEqual(ranks[0]);
    expect(ranks[0]![0]).not.toEqual(ranks[0]![1]);
  });

  it('averages gradients inside subgroups, and parameters over all ranks', async () => {
    const ranks = await onRanks(4, async (group) => {
      const within = (await group.split(group.rank >> 1))!;
      const net = makeNet();
      const inner = new SGD(net.parameters(), { lr: 0.1 });
      const outer = await diloco(net, { group, inner, within, every: 3, outer: 'average' });
      const seen: Float32Array[] = [];
      for (let step = 0; step < 3; step++) {
        net.zeroGrad();
        lossOf((x) => net.forward(x), (step * 4 + group.rank) * 5, 5).backward();
        await outer.model!.finish();
        await outer.step({ samples: 5 });
        seen.push(flat(net));
      }
      await outer.close();
      return seen;
    });
    expect(ranks[0]![1]).toEqual(ranks[1]![1]);
    expect(ranks[2]![1]).toEqual(ranks[3]![1]);
    expect(ranks[0]![1]).not.toEqual(ranks[2]![1]);
    for (const rank of ranks) expect(rank[2]).toEqual(ranks[0]![2]);
  });

  it("begins with rank 0's parameters, and calls the function once for each fragment", async () => {
    const calls: number[] = [];
    const ranks = await onRanks(2, async (group) => {
      const net = makeNet(group.rank + 1);
      const outer = await diloco(net, {
        group,
        every: 5,
        fragments: 2,
        outer: (params): OuterOptimizer => {
          calls.push(params.length);
          return nesterov(params);
        },
      });
      expect(outer.optimizers).toHaveLength(2);
      return flat(net);
    });
    expect(ranks[1]).toEqual(ranks[0]);
    expect(ranks[0]).toEqual(flat(makeNet(1)));
    expect(calls.reduce((sum, count) => sum + count, 0)).toBe(2 * makeNet().parameters().length);
  });
});
