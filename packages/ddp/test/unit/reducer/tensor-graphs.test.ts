// Graphs of @ringwise/tensor with more than one forward and one backward. The gradients of two ranks must equal those
// of one process.
import { checkpoint, crossEntropy, scope, type Tensor, tensor } from '@ringwise/tensor';
import { buffer, Linear, Module } from '@ringwise/tensor/nn';
import { describe, expect, it } from 'vitest';
import { type DdpOptions, type DistributedDataParallel, ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';

class Net extends Module {
  readonly first = new Linear(3, 3);
  readonly second = new Linear(3, 3);
  readonly extra = new Linear(3, 3);
  readonly steps = buffer(tensor([0, 0]));
  /** The same layer as `first`, whose parameters must be listed only once. */
  readonly tied = this.first;

  constructor() {
    super();
    for (const [i, parameter] of this.parameters().entries()) {
      const memory = parameter.dataSync();
      for (let k = 0; k < memory.length; k++) memory[k] = Math.sin(1 + i + 0.7 * k);
    }
  }

  forward(x: Tensor): Tensor {
    return this.second.forward(this.tied.forward(this.first.forward(x).tanh()).tanh());
  }
}

const batch = (from: number, count: number) => {
  const rows = Array.from({ length: count }, (_, i) => [0, 1, 2].map((k) => Math.cos(3 * (from + i) + k)));
  return { x: tensor(rows), y: tensor(Int32Array.from(rows, (_, i) => (from + i) % 3)) };
};
type Forward = (x: Tensor) => Tensor;
const lossOf = (forward: Forward, from: number, count: number) => {
  const { x, y } = batch(from, count);
  return crossEntropy(forward(x), y);
};
const gradients = (net: Net) =>
  net.parameters().map(({ grad }) => (grad ? [...(grad.dataSync() as Float32Array)] : null));

interface Step {
  /** Runs forward and backward on `count` samples from `from` on: a rank's share, or all of them with one rank. */
  readonly run: (net: Net, forward: Forward, from: number, count: number) => void;
  readonly options?: Partial<DdpOptions>;
}

const steps: Record<string, Step> = {
  'a layer that is used twice': {
    run: (_, forward, from, count) => lossOf(forward, from, count).backward(),
    options: { unused: 'skip' },
  },
  'several forwards before one backward': {
    run: (net, forward, from, count) => {
      const both = [forward, (x: Tensor) => forward(net.extra.forward(x))];
      const [plain, more] = both.map((each) => lossOf(each, from, count));
      plain!.add(more!).backward();
    },
  },
  'a part that is computed again in backward': {
    run: (net, _, from, count) => {
      const again = (x: Tensor) => checkpoint((x: Tensor) => net.first.forward(x).tanh(), x);
      lossOf((x) => net.second.forward(again(again(x))), from, count).backward();
    },
    options: { unused: 'skip', bucketBytes: 1 },
  },
  'a backward inside another one': {
    run: (net, _, from, count) => {
      const { x, y } = batch(from, count);
      const hidden = net.second.forward(x).tanh();
      const other = lossOf((x) => net.extra.forward(x), from, count);
      hidden.registerHook(() => {
        other.backward();
        return undefined;
      });
      crossEntropy(hidden, y).backward();
    },
    options: { unused: 'skip', bucketBytes: 1 },
  },
  'a backward through a part of the model': {
    run: (net, _, from, count) => lossOf((x) => net.second.forward(x), from, count).backward(),
    options: { unused: 'skip', bucketBytes: 1 },
  },
};

describe('averages the gradients of', () => {
  for (const [name, { run, options }] of Object.entries(steps))
    it(name, async () => {
      const alone = new Net();
      scope(() => run(alone, (x) => alone.forward(x), 0, 4));
      const ranks = values(
        await onRanks(2, async (group) => {
          const net = new Net();
          const model = await ddp(net, { group, ...options });
          scope(() => run(net, model.forward, 2 * group.rank, 2));
          await model.finish();
          return gradients(net);
        }),
      );
      for (const rank of ranks) {
        expect(rank).toEqual(ranks[0]);
        expect(rank.map((grad) => grad !== null)).toEqual(gradients(alone).map((grad) => grad !== null));
        expect(
          largestDifference(
            rank.flatMap((g) => g ?? []),
            gradients(alone).flatMap((g) => g ?? []),
          ),
        ).toBeLessThan(1e-6);
      }
    });
});

it('weights losses of uneven batches', async () => {
  const alone = new Net();
  scope(() => lossOf((x) => alone.forward(x), 0, 5).backward());
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = new Net();
      const model = await ddp(net, { group, unused: 'skip' });
      const count = group.rank === 0 ? 1 : 4;
      scope(() => model.backward(lossOf(model.forward, group.rank, count), { weight: count }));
      await model.finish();
      return gradients(net);
    }),
  );
  expect(ranks[1]).toEqual(ranks[0]);
  expect(
    largestDifference(
      ranks[0]!.flatMap((g) => g ?? []),
      gradients(alone).flatMap((g) => g ?? []),
    ),
  ).toBeLessThan(1e-6);
});

it("gives all ranks the buffers of rank 0's module", async () => {
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = new Net();
      const model = await ddp(net, { group, unused: 'skip' });
      net.steps.fill_(group.rank + 3);
      scope(() => lossOf(model.forward, 0, 1).backward());
      await model.finish();
      return [...(net.steps.dataSync() as Float32Array)];
    }),
  );
  expect(ranks).toEqual([
    [3, 3],
    [3, 3],
  ]);
});

async function step(model: DistributedDataParallel<Net>, from: number): Promise<void> {
  scope(() => lossOf(model.forward, from, 2).backward());
  await model.finish();
}

it('names parameters that were frozen after ddp(), and starts anew after close()', async () => {
  const freeze = (net: Net, isFrozen: boolean) => {
    for (const parameter of net.second.parameters()) parameter.requiresGrad = !isFrozen;
  };
  const outcomes = await onRanks(1, async (group) => {
    const net = new Net();
    freeze(net, true);
    const frozen = await ddp(net, { group, unused: 'skip' });
    await step(frozen, 0);
    expect(net.second.weight.grad).toBeNull();
    frozen.close();
    freeze(net, false);
    const whole = await ddp(net, { group, unused: 'skip' });
    await step(whole, 0);
    expect(net.second.weight.grad).not.toBeNull();
    whole.close();
    const late = await ddp(net, { group });
    freeze(net, true);
    await step(late, 0);
  });
  expect(reasons(outcomes)[0]).toMatchObject({
    code: 'ERR_DDP_UNUSED',
    params: ['second.weight', 'second.bias', 'extra.weight', 'extra.bias'],
  });
});

it('averages parameters of several dtypes, halves included, each in its own', async () => {
  const run = async (size: number) =>
    values(
      await onRanks(size, async (group) => {
        const net = new Net();
        net.second.to('bfloat16');
        const model = await ddp(net, { group, unused: 'skip' });
        const { x, y } = batch((4 / size) * group.rank, 4 / size);
        scope(() => {
          const hidden = net.first.forward(x).tanh().to('bfloat16');
          crossEntropy(net.second.forward(hidden).to('float32'), y).backward();
        });
        await model.finish();
        return [net.first.weight, net.second.weight].map(({ grad }) => [grad!.dtype, grad!.toArray()]);
      }),
    );
  const [alone] = await run(1);
  const ranks = await run(2);
  expect(alone!.map(([dtype]) => dtype)).toEqual(['float32', 'bfloat16']);
  for (const rank of ranks) {
    expect(rank).toEqual(ranks[0]);
    const all = [rank, alone!].map((grads) => grads.flatMap(([, rows]) => (rows as number[][]).flat()));
    expect(largestDifference(all[0]!, all[1]!)).toBeLessThan(2e-3);
  }
});

it('a second backward through a freed graph says so, and the next step is averaged as always', async () => {
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = new Net();
      const model = await ddp(net, { group, unused: 'skip' });
      const loss = lossOf(model.forward, group.rank, 1);
      loss.backward();
      await model.finish();
      expect(() => loss.backward()).toThrow('the graph was freed by an earlier backward');
      net.zeroGrad();
      await step(model, group.rank);
      return gradients(net);
    }),
  );
  expect(ranks[1]).toEqual(ranks[0]);
});

it('an error in a hook of the program leaves backward, and the next forward fails', async () => {
  const outcomes = await onRanks(1, async (group) => {
    const net = new Net();
    const model = await ddp(net, { group, unused: 'skip' });
    const remove = net.first.weight.onGradReady(() => {
      throw new Error('in the hook');
    });
    expect(() => scope(() => lossOf(model.forward, 0, 2).backward())).toThrow('in the hook');
    remove();
    model.forward(batch(0, 1).x);
  });
  expect(reasons(outcomes)[0]).toMatchObject({ code: 'ERR_DDP_UNFINISHED' });
});

it('adds to the average of a gradient that another rank alone contributed to, until zeroGrad', async () => {
  const gradientsOfFirst = async (ranks: number) =>
    values(
      await onRanks(ranks, async (group) => {
        const net = new Net();
        const model = await ddp(net, { group, unused: 'skip' });
        const average = async (forwards: Forward[]) => {
          for (const [rank, forward] of forwards.entries()) {
            const isMine = ranks === 1 || rank === group.rank;
            const isLast = ranks > 1 || rank === forwards.length - 1;
            const run = () => lossOf(forward, 2 * rank, 2).backward();
            if (isMine) isLast ? run() : model.noSync(run);
          }
          await model.finish();
        };
        const all: Forward = (x) => model.forward(x);
        const second: Forward = (x) => net.second.forward(x);
        await average([all, all]);
        model.zeroGrad();
        await average([all, second]);
        await average([all, all]);
        return (gradients(net).slice(0, 2) as number[][]).flat();
      }),
    );
  const [alone] = await gradientsOfFirst(1);
  const halved = alone!.map((x) => x / 2);
  for (const found of await gradientsOfFirst(2)) expect(largestDifference(found, halved)).toBeLessThan(1e-6);
});

describe("unused: 'skip' keeps a gradient that the program has filled with zeros, as PyTorch does, and drops others", () => {
  /** The sums of the gradients of `extra`, which only the third of five backwards uses. */
  const found = async (ranks: number, setToNull: (step: number) => boolean, rebuild: boolean) =>
    values(
      await onRanks(ranks, async (group) => {
        const net = new Net();
        const model = await ddp(net, { group, unused: 'skip', rebuild });
        const sum = () => net.extra.weight.grad?.abs().sum().item() ?? null;
        const sums = [sum()];
        for (let step = 0; step < 5; step++) {
          net.zeroGrad({ setToNull: setToNull(step) });
          lossOf((x) => model.forward(step === 2 ? net.extra.forward(x) : x), 0, 1).backward();
          await model.finish();
          sums.push(sum());
        }
        return sums;
      }),
    );

  for (const rebuild of [false, true])
    it(rebuild ? 'with rebuilt buckets' : 'with the first buckets', async () => {
      for (const setToNull of [() => true, () => false, (step: number) => step !== 3]) {
        const [alone] = await found(1, setToNull, rebuild);
        expect(alone!.slice(0, 3)).toEqual([null, null, null]);
        expect(alone![4]).toBe(setToNull(3) ? null : 0);
        const rounded = (sums: (number | null)[]) => sums.map((sum) => sum && Number(sum.toFixed(5)));
        for (const rank of await found(2, setToNull, rebuild)) expect(rounded(rank)).toEqual(rounded(alone!));
      }
    });
});
