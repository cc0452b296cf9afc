// Tests ZeRO with every optimiser of @ringwise/tensor: the same numbers as one optimiser of all parameters, also after
// a saved state was loaded on another number of ranks.
import { scope, type Tensor, tensor } from '@ringwise/tensor';
import * as o from '@ringwise/tensor/optim';
import { describe, expect, it, test } from 'vitest';
import { type ConsolidatedState, ZeroRedundancyOptimizer } from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';

const optimizers: Readonly<Record<string, (params: Tensor[]) => o.Optimizer>> = {
  SGD: (p) => new o.SGD(p, { lr: 0.1, momentum: 0.9 }),
  AdamW: (p) => new o.AdamW(p, { lr: 0.1, amsgrad: true }),
  RMSprop: (p) => new o.RMSprop(p, { momentum: 0.5, centered: true }),
  Lion: (p) => new o.Lion(p),
  Adadelta: (p) => new o.Adadelta(p),
  Adagrad: (p) => new o.Adagrad(p, { lrDecay: 0.1 }),
  Adamax: (p) => new o.Adamax(p),
  NAdam: (p) => new o.NAdam(p),
  RAdam: (p) => new o.RAdam(p, { betas: [0.9, 0.9] }),
  ASGD: (p) => new o.ASGD(p, { t0: 2 }),
  Rprop: (p) => new o.Rprop(p),
  Adafactor: (p) => new o.Adafactor(p),
  Muon: (p) => new o.Muon(p, { lr: 0.1 }),
};
const shapesOf = (name: string): number[][] =>
  name === 'Muon'
    ? [
        [4, 3],
        [2, 3],
        [3, 3],
      ]
    : [[7], [2, 3], [4, 3]];

const parametersOf = (name: string): Tensor[] =>
  shapesOf(name).map((shape, n) => {
    const count = shape.reduce((a, b) => a * b, 1);
    return tensor(
      Float64Array.from({ length: count }, (_, i) => Math.sin(i + n)),
      { shape, dtype: 'float64', requiresGrad: true },
    );
  });

/** Computes gradients that differ in each step, the same on each rank. */
function backward(params: readonly Tensor[], step: number): void {
  for (const param of params) param.zeroGrad();
  scope(() => {
    const losses = params.map((param, n) =>
      param
        .sub(Math.cos(3 * step + n))
        .square()
        .sum(),
    );
    losses.reduce((a, b) => a.add(b)).backward();
  });
}

const numbersOf = (params: readonly Tensor[]): number[][] =>
  params.map((param) => [...(param.dataSync() as Float64Array)]);

function alone(name: string, steps: number): { numbers: number[][]; state: o.OptimizerState } {
  const params = parametersOf(name);
  const optimizer = optimizers[name]!(params);
  for (let step = 0; step < steps; step++) {
    backward(params, step);
    optimizer.step();
  }
  return { numbers: numbersOf(params), state: optimizer.stateDict() };
}

/** The values of the parameters, and the state of the optimiser, after some steps. */
interface Saved {
  readonly numbers: number[][];
  readonly state: ConsolidatedState;
}

/** Trains with ZeRO from step `first` on. Returns what each rank has; the state is that of rank 0. */
async function sharded(
  name: string,
  ranks: number,
  first: number,
  steps: number,
  from?: Saved,
): Promise<Saved[]> {
  let state: ConsolidatedState | null = null;
  const all = values(
    await onRanks(ranks, async (group) => {
      const params = parametersOf(name);
      if (from)
        for (const [i, param] of params.entries()) (param.dataSync() as Float64Array).set(from.numbers[i]!);
      const zero = new ZeroRedundancyOptimizer(params, group, optimizers[name]!);
      const own = from && zero.shardOf(from.state);
      if (own) zero.local!.loadStateDict(own);
      for (let step = first; step < steps; step++) {
        backward(params, step);
        await zero.stepAsync();
      }
      await zero.consolidateStateDict();
      if (group.rank === 0) state = zero.stateDict();
      return numbersOf(params);
    }),
  );
  return all.map((numbers) => ({ numbers, state: state! }));
}

describe('ZeRO', () => {
  test.each(Object.keys(optimizers))(
    'gives the numbers of one %s, and goes on with other ranks',
    async (name) => {
      const { numbers, state } = alone(name, 5);
      const whole = await sharded(name, 2, 0, 5);
      for (const rank of whole) expect(rank.numbers).toEqual(numbers);
      const { steps, tensors } = whole[0]!.state;
      expect(steps).toEqual(state.steps);
      expect(Object.keys(tensors).sort()).toEqual(Object.keys(state.tensors).sort());
      const [half] = await sharded(name, 2, 0, 3);
      for (const rank of await sharded(name, 3, 3, 5, half)) expect(rank.numbers).toEqual(numbers);
    },
  );

  it('refuses LBFGS, whose step evaluates the loss of all parameters, and what is no optimiser', async () => {
    const make = (given: unknown) => async (group: Parameters<Parameters<typeof onRanks>[1]>[0]) => {
      const params = parametersOf('SGD');
      return new ZeroRedundancyOptimizer(
        params,
        group,
        (shard) => (given ?? new o.LBFGS(shard)) as o.Optimizer,
      );
    };
    const sentence =
      'ZeroRedundancyOptimizer: make: expected an optimizer that updates each parameter by its own gradient, with ' +
      'step() without arguments and stateDict(), got LBFGS, whose step() takes an argument. Make it of all parameters, on every rank.';
    for (const { message, code } of reasons(await onRanks(2, make(null))))
      expect([code, message]).toEqual(['ERR_DDP_INVALID', sentence]);
    for (const { message } of reasons(await onRanks(2, make({ step: 1 }))))
      expect(message).toMatch(/got an object/);
  });

  it('refuses on all ranks to collect or move the state of several groups, whose order it does not know', async () => {
    const groupsOf = (shard: Tensor[]) => [{ params: shard }, { params: parametersOf('SGD'), lr: 1 }];
    // Of five ranks, two have no shard.
    for (const size of [2, 5])
      for (const verb of ['consolidateStateDict', 'rebind'] as const) {
        const outcomes = await onRanks(size, async (group) => {
          const make = (shard: Tensor[]) => new o.AdamW(groupsOf(shard));
          const zero = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, make);
          await (verb === 'rebind' ? zero.rebind(group) : zero.consolidateStateDict());
        });
        for (const { message, code } of reasons(outcomes)) {
          expect([code, message]).toEqual(['ERR_DDP_INVALID', expect.stringContaining(`${verb}: `)]);
          expect(message).toContain('has 2 groups of parameters');
        }
      }
  });

  it('tells all ranks which rank could not read the state of its shard', async () => {
    const outcomes = await onRanks(3, async (group) => {
      const make = (shard: Tensor[]) => {
        const adam = new o.AdamW(shard);
        const failing = (): never => {
          throw new Error('no state today');
        };
        return { step: () => adam.step(), stateDict: group.rank === 1 ? failing : () => adam.stateDict() };
      };
      await new ZeroRedundancyOptimizer(parametersOf('SGD'), group, make).consolidateStateDict();
    });
    const told =
      "consolidateStateDict: rank 1 could not read its share of the optimizer's state: no state today";
    expect(reasons(outcomes).map(({ message }) => message)).toEqual([told, 'no state today', told]);
    expect(reasons(outcomes)[0]).toMatchObject({ code: 'ERR_DDP_INVALID', ranks: [1] });
  });

  it('handles frozen parameters, a single one, and none', async () => {
    const wanted: Record<number, number[]> = { 0: [], 1: [2], 3: [2, 2, 0] };
    for (const count of [0, 1, 3])
      for (const size of [1, 2, 4]) {
        const run = async (ranks: number, loaded: ConsolidatedState | null) =>
          values(
            await onRanks(ranks, async (group) => {
              const params = parametersOf('SGD').slice(0, count);
              const frozen = count === 3 ? params.pop()!.detach() : null;
              const all = frozen === null ? params : [...params, frozen];
              const zero = new ZeroRedundancyOptimizer(all, group, (shard) => new o.AdamW(shard));
              if (loaded) zero.loadStateDict(loaded);
              if (count > 0) backward(params, 0);
              await zero.stepAsync();
              for (const to of [0, ranks - 1, 0]) await zero.consolidateStateDict(to);
              return group.rank === 0 ? zero.stateDict() : null;
            }),
          )[0]!;
        const first = await run(size, null);
        const again = await run(2, first);
        expect(again.steps).toEqual(wanted[count]);
        expect(first.steps).toEqual(again.steps.map((steps) => steps / 2));
      }
  });

  it('saves the options that a schedule has set since the last step, and keeps loaded ones in zeroGrad()', async () => {
    const make = (params: Tensor[]) => new o.SGD(params, { lr: 0.1, momentum: 0.9 });
    const rates = await onRanks(2, async (group) => {
      const zero = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, make);
      const schedule = new o.StepLR(zero.whole, { stepSize: 1, gamma: 0.5 });
      backward(zero.params, 0);
      await zero.stepAsync();
      schedule.step();
      await zero.consolidateStateDict();
      const state = await group.broadcastObject(group.rank === 0 ? zero.stateDict() : undefined);
      const resumed = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, make);
      resumed.loadStateDict(state);
      resumed.zeroGrad();
      backward(resumed.params, 1);
      await resumed.stepAsync();
      return [(state.groups[0] as unknown as { lr: number }).lr, resumed.local!.groups[0]!.lr];
    });
    expect(values(rates)).toEqual([
      [0.05, 0.05],
      [0.05, 0.05],
    ]);
  });

  it('takes over options of a shard in zeroGrad()', async () => {
    const rates = await onRanks(2, async (group) => {
      const zero = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, optimizers.SGD!);
      zero.local!.groups[0]!.lr = 0.02;
      zero.zeroGrad();
      backward(zero.params, 0);
      await zero.stepAsync();
      return zero.local!.groups[0]!.lr;
    });
    expect(values(rates)).toEqual([0.02, 0.02]);
  });

  it('uses options that the program sets on a shard in every step, for its copy, too', async () => {
    const rates = await onRanks(2, async (group) => {
      const make = (params: Tensor[]) => new o.SGD(params, { lr: 0.1 });
      const zero = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, make, { copies: 2 });
      const alone = make(parametersOf('SGD'));
      const seen: number[] = [];
      for (const [step, lr] of [0.1, 0.02, 0.003].entries()) {
        for (const each of [zero, alone]) each.zeroGrad();
        for (const each of [zero, alone]) backward(each.params, step);
        for (const each of [zero.local!, alone]) each.lr = lr;
        alone.step();
        zero.update(); // also updates the copy of the other rank's shard
        expect(numbersOf(zero.params)).toEqual(numbersOf(alone.params));
        await zero.exchange();
        seen.push(zero.whole.lr);
      }
      await zero.consolidateStateDict();
      if (group.rank === 0) seen.push((zero.stateDict().groups[0] as unknown as { lr: number }).lr);
      zero.whole.lr = 0.5; // the latest change counts
      zero.update();
      return [...seen, zero.local!.lr];
    });
    expect(values(rates)).toEqual([
      [0.1, 0.02, 0.003, 0.003, 0.5],
      [0.1, 0.02, 0.003, 0.5],
    ]);
  });

  it('refuses to give options of several groups to all shards, and names of other optimizers', async () => {
    const make = (params: Tensor[]) => {
      const groups = [0, 1].map((half) => ({
        params: params.filter((_, i) => i % 2 === half),
        lr: 0.1 * (1 + half),
      }));
      return new o.SGD(groups, { lr: 0.1 });
    };
    await onRanks(2, async (group) => {
      const zero = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, make);
      expect(() => zero.whole).toThrow(
        "whole: the optimizer of a rank's share has 2 groups of parameters; expected one, because all shards get the options of one group.",
      );
      zero.zeroGrad();
      backward(zero.params, 0);
      await zero.stepAsync();
      expect(zero.local!.groups.map(({ lr }) => lr)).toEqual([0.1, 0.2]);
      const foreign = zero as unknown as { lr: number; param_groups: unknown };
      expect(() => (foreign.lr = 1)).toThrow(
        'ZeroRedundancyOptimizer.lr: there is no member of this name; expected whole.lr.',
      );
      expect(() => foreign.param_groups).toThrow('expected whole.groups');
      expect(() => new o.StepLR(zero as never, { stepSize: 1 })).toThrow('expected whole.groups');
    }).then(values);
  });

  it('refuses to load what is no state of these parameters', async () => {
    await onRanks(2, async (group) => {
      const zero = new ZeroRedundancyOptimizer(parametersOf('SGD'), group, optimizers.AdamW!);
      const other = { groups: [], steps: [1], tensors: {} };
      for (const [state, got] of [
        [{}, 'an object'],
        [null, 'null'],
        [other, 'a state of 1'],
      ] as [never, string][])
        for (const load of [() => zero.loadStateDict(state), () => zero.shardOf(state)])
          expect(load).toThrow(`optimizer of ${zero.params.length} parameters, got ${got}.`);
    }).then(values);
  });

  it('loads the state of an optimizer of one process, which loads that of ZeRO', async () => {
    const { state } = alone('AdamW', 2);
    await onRanks(2, async (group) => {
      const zero = new ZeroRedundancyOptimizer(parametersOf('AdamW'), group, optimizers.AdamW!);
      zero.loadStateDict(state);
      await zero.consolidateStateDict();
      if (group.rank > 0) return;
      const other = optimizers.AdamW!(parametersOf('AdamW'));
      other.loadStateDict(zero.stateDict());
      const { tensors, ...rest } = other.stateDict();
      expect(rest).toEqual({ groups: state.groups, steps: state.steps });
      for (const [name, tensor] of Object.entries(state.tensors))
        expect([name, tensors[name]!.toArray()]).toEqual([name, tensor.toArray()]);
    }).then(values);
  });

  it('refuses the class of an optimizer, which PyTorch takes', async () => {
    await onRanks(1, async (group) => {
      expect(() => new ZeroRedundancyOptimizer(parametersOf('AdamW'), group, o.AdamW as never)).toThrow(
        'make: expected a function such as (shard) => new AdamW(shard, { lr }), got the class AdamW.',
      );
    }).then(values);
  });

  it('refuses a state of several groups, and one with tensors that are none', async () => {
    const { state } = alone('AdamW', 1);
    const [{ params, ...options }] = state.groups as [(typeof state.groups)[0]];
    const groups = params.map((param) => ({ ...options, params: [param] }));
    await onRanks(2, async (group) => {
      const zero = new ZeroRedundancyOptimizer(parametersOf('AdamW'), group, optimizers.AdamW!);
      for (const verb of ['loadStateDict', 'shardOf'] as const) {
        expect(() => zero[verb]({ ...state, groups } as never)).toThrow(
          `${verb}: the state has ${groups.length} groups of parameters; expected one`,
        );
        expect(() => zero[verb]({ ...state, tensors: { 'mean.0': null } } as never)).toThrow('got an object');
      }
    }).then(values);
  });
});
