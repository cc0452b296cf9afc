// Saving and loading: training goes on bit by bit where it was.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Group } from '@ringwise/collectives';
import { loadSnapshot, perRank, saveSnapshot } from '@ringwise/ddp';
import { AdamW, SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import { type DiLoCo, type DilocoOptions, type DilocoState, diloco } from '../../../src/index.ts';
import { onRanks } from '../../support/loopback.ts';
import { flat, makeNet, setEach } from '../../support/net.ts';

type Net = ReturnType<typeof makeNet>;

const nesterov = (params: ConstructorParameters<typeof SGD>[0]) =>
  new SGD(params, { lr: 0.7, momentum: 0.9, nesterov: true });

/** Takes steps as training would, by a function of the parameters, the step and the rank. */
async function train(net: Net, outer: DiLoCo<Net>, group: Group, steps: number): Promise<void> {
  for (let i = 0; i < steps; i++) {
    const { steps: step } = outer;
    setEach(net, (value, k) => Math.fround(value * 0.99 + 0.01 * Math.sin(k + step * 7 + group.rank)));
    await outer.step({ samples: 3 + group.rank });
  }
}

const variants: Record<string, Omit<DilocoOptions<Net>, 'group'>> = {
  average: { every: 4, outer: 'average' },
  'outer SGD': { every: 4, outer: nesterov },
  'outer AdamW with weight decay': {
    every: 4,
    outer: (params) => new AdamW(params, { lr: 0.1, weightDecay: 0.1 }),
  },
  'fragments with delay, mix and int8': {
    ...{ every: 5, fragments: 3, delay: 1, mix: 0.5, wire: 'int8' },
    outer: nesterov,
  },
};

describe('stateDict', () => {
  for (const [name, options] of Object.entries(variants))
    it(`resumes bit by bit: ${name}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'ringwise-diloco-'));
      try {
        const resumed = await onRanks(2, async (group) => {
          const net = makeNet();
          const outer = await diloco(net, { ...options, group });
          await train(net, outer, group, 4);
          while (outer.isPending) await train(net, outer, group, 1);
          await saveSnapshot(join(folder, 'run'), { outer: outer.stateDict() }, group);
          const at = outer.steps;
          await train(net, outer, group, 11);

          const other = makeNet(5);
          const again = await diloco(other, { ...options, group });
          const saved = (await loadSnapshot<{ outer: DilocoState }>(join(folder, 'run'), group))!;
          again.loadStateDict(saved.outer);
          expect(again.steps).toBe(at);
          await train(other, again, group, 11);
          expect(again.averages).toBe(outer.averages);
          expect(flat(other)).toEqual(flat(net));
          return flat(net);
        });
        expect(resumed[0]).not.toEqual(flat(makeNet()));
      } finally {
        await rm(folder, { recursive: true });
      }
    });

  it('resumes in the middle of a round, with local parameters and samples of each rank', async () => {
    await onRanks(2, async (group) => {
      const net = makeNet();
      const options = { ...variants['outer SGD']!, group };
      const outer = await diloco(net, options);
      await train(net, outer, group, 6);
      const saved = outer.stateDict();
      await train(net, outer, group, 7);
      const other = makeNet(3);
      const again = await diloco(other, options);
      again.loadStateDict(saved);
      await train(other, again, group, 7);
      expect(flat(other)).toEqual(flat(net));
    });
  });

  it('loads on another number of ranks without `own`', async () => {
    const [saved] = await onRanks(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { ...variants['outer SGD']!, group });
      await train(net, outer, group, 6);
      const { own, ...shared } = outer.stateDict();
      expect(own).toBeDefined();
      return {
        shared,
        global: shared.fragments.flatMap(({ global }) => global.flatMap((each) => [...each])),
      };
    });
    const ranks = await onRanks(3, async (group) => {
      const net = makeNet(9);
      const outer = await diloco(net, { ...variants['outer SGD']!, group });
      outer.loadStateDict(saved!.shared);
      expect([...flat(net)]).toEqual(saved!.global);
      await train(net, outer, group, 2);
      return flat(net);
    });
    for (const rank of ranks) expect(rank).toEqual(ranks[0]);
  });

  for (const [name, options] of Object.entries(variants))
    it(`goes back to a state from before the first average: ${name}`, async () => {
      await onRanks(2, async (group) => {
        const net = makeNet();
        const outer = await diloco(net, { ...options, group });
        const before = outer.stateDict();
        const take = async () => {
          await train(net, outer, group, 11);
          await outer.finish();
          return flat(net);
        };
        const first = await take();
        outer.loadStateDict(before);
        expect(outer.averages).toBe(0);
        expect(await take()).toEqual(first);
      });
    });

  it('has copies', async () => {
    await onRanks(1, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { ...variants['outer SGD']!, group });
      await train(net, outer, group, 4);
      const saved = outer.stateDict();
      const before = structuredClone(saved.fragments);
      await train(net, outer, group, 8);
      expect(saved.fragments).toEqual(before);
    });
  });

  it('is refused while an average is on its way, and for another model', async () => {
    await onRanks(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { ...variants['fragments with delay, mix and int8']!, group });
      const fresh = outer.stateDict();
      await train(net, outer, group, 2);
      expect(outer.isPending).toBe(true);
      expect(() => outer.stateDict()).toThrow(
        /^stateDict: an average is in flight; expected none\. Call it in a step where `isPending` is false/,
      );
      expect(() => outer.loadStateDict(fresh)).toThrow(/^loadStateDict: an average is in flight/);
      await outer.finish();

      const before = flat(net);
      const [first] = fresh.fragments;
      const wrong: readonly [unknown, RegExp][] = [
        [{}, /expected the result of stateDict\(\), got something else/],
        [{ ...fresh, fragments: [first] }, /expected 3 fragments, got 1/],
        [
          { ...fresh, fragments: [first, first, first] },
          /fragment 1 expected parameters of 256, 16 elements, got 192, 16/,
        ],
        [
          { ...fresh, fragments: fresh.fragments.map((each) => ({ ...each, outer: null })) },
          /fragment 0 expected an outer optimizer, got none/,
        ],
        [
          {
            ...fresh,
            fragments: fresh.fragments.map((each) => ({
              ...each,
              outer: { rest: {}, tensors: { 'moment.0': new Float32Array(1) } },
            })),
          },
          /the outer optimizer keeps momentumBuffer\.0, momentumBuffer\.1, the state has moment\.0/,
        ],
        [
          {
            ...fresh,
            own: perRank({
              samples: [0, 0, 0],
              local: [null, null, null],
              residuals: [new Float32Array(3), null, null],
            }),
          },
          /fragment 0 expected rounding errors of 208 elements, got 3/,
        ],
      ];
      for (const [state, message] of wrong)
        expect(() => outer.loadStateDict(state as DilocoState)).toThrow(message);
      expect(flat(net)).toEqual(before);
    });
  });
});
