// Tests ddp() and the object that it returns, with loopback groups and the tiny autograd.
import { describe, expect, it } from 'vitest';
import { ddp, gradParamsSymbol } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

it('starts all ranks from the parameters of rank 0', async () => {
  const parameters = values(
    await onRanks(3, async (group) => {
      const net = new TinyMlp(group.rank);
      await ddp(net, { group });
      return net.parameters();
    }),
  );
  for (const other of parameters) expect(other).toEqual(new TinyMlp(0).parameters());
});

it('takes a list of parameters as well as a model', async () => {
  values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const params = net[gradParamsSymbol]();
      const model = await ddp(params, { group });
      expect(model.module).toBe(params);
      net.loss(group.rank, 1);
      net.autograd.backward();
      await model.finish();
      // @ts-expect-error: a list has no forward
      expect(() => model.forward()).toThrow('a model with a forward method');
    }),
  );
});

describe('noSync', () => {
  const oneStepWith = (accumulate: (run: () => void, model: { noSync<T>(fn: () => T): T }) => unknown) =>
    onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group });
      const run = (from: number) => {
        net.loss(from, 2);
        net.autograd.backward();
      };
      await accumulate(() => run(8 * group.rank), model);
      const local = net.gradients();
      run(8 * group.rank + 4);
      await model.finish();
      return { local, averaged: net.gradients() };
    });
  const expectSumAveraged = (ranks: { local: number[][]; averaged: number[][] }[]) => {
    const alone = new TinyMlp(1);
    for (const from of [0, 4, 8, 12]) {
      alone.loss(from, 2);
      alone.autograd.backward();
    }
    expect(ranks[0]!.local).not.toEqual(ranks[1]!.local);
    expect(ranks[0]!.averaged).toEqual(ranks[1]!.averaged);
    const mean = alone
      .gradients()
      .flat()
      .map((sum) => sum / 2);
    expect(largestDifference(ranks[0]!.averaged.flat(), mean)).toBeLessThan(1e-5);
  };

  it('accumulates on each rank; the next backward averages the sum', async () => {
    expectSumAveraged(values(await oneStepWith((run, model) => model.noSync(run))));
  });

  it('waits for an async function and returns its result', async () => {
    const ranks = await oneStepWith(async (run, model) => {
      const result = await model.noSync(async () => {
        await Promise.resolve();
        run();
        return 'done';
      });
      expect(result).toBe('done');
    });
    expectSumAveraged(values(ranks));
  });

  it('ends when its function throws', async () => {
    const ranks = await oneStepWith(async (run, model) => {
      const fail = () => {
        run();
        throw new Error('interrupted');
      };
      expect(() => model.noSync(fail)).toThrow('interrupted');
    });
    expectSumAveraged(values(ranks));
    const asyncRanks = await oneStepWith(async (run, model) => {
      const fail = async () => {
        run();
        throw new Error('interrupted');
      };
      await expect(model.noSync(fail)).rejects.toThrow('interrupted');
    });
    expectSumAveraged(values(asyncRanks));
  });
});

describe('finish', () => {
  it('returns at once when nothing is under way', async () => {
    values(
      await onRanks(2, async (group) => {
        const model = await ddp(new TinyMlp(1), { group });
        await model.finish();
        await model.finish();
      }),
    );
  });

  for (const tellsEnd of [true, false]) {
    const engine = tellsEnd ? 'tells when backward ends' : 'does not tell when backward ends';
    it(`is demanded by forward, noSync and the next backward; the autograd ${engine}`, async () => {
      const outcomes = await onRanks(2, async (group) => {
        const net = new TinyMlp(1, { tellsEnd });
        const model = await ddp(net, { group });
        net.loss(0, 2);
        net.autograd.backward();
        expect(() => net.loss(0, 2, model.forward)).toThrow(/^forward: .*await model\.finish\(\)/);
        expect(() => model.noSync(() => {})).toThrow(/^noSync: .*await model\.finish\(\)/);
        net.loss(0, 2);
        net.autograd.backward();
      });
      for (const error of reasons(outcomes)) expect(error.code).toBe('ERR_DDP_UNFINISHED');
    });
  }
});

it('close() stops averaging, and forward says so', async () => {
  const gradients = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group });
      model.close();
      model.close();
      net.loss(8 * group.rank, 2);
      net.autograd.backward();
      await model.finish();
      expect(() => net.loss(0, 1, model.forward)).toThrow('this model was closed');
      return net.gradients();
    }),
  );
  expect(gradients[0]).not.toEqual(gradients[1]);
});
