// Tests weighted averages, Σ weight·gradient / Σ weight, with which uneven batches train as one joined batch.
import { describe, expect, it } from 'vitest';
import { type CommHook, type DdpOptions, ddp } from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import type { TinyOptions } from '../../support/tiny-autograd.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const averageHook: CommHook = function* (bucket, group) {
  yield group.allReduce(bucket, { op: 'avg' });
};

/** Returns the gradients after rank r took `counts[r]` samples, in two backward passes if it accumulates. */
async function gradientsOf(
  counts: readonly number[],
  {
    tiny = {},
    accumulates = false,
    saysTotal = false,
  }: { tiny?: TinyOptions; accumulates?: boolean; saysTotal?: boolean } = {},
  options: Partial<DdpOptions> = {},
) {
  return values(
    await onRanks(counts.length, async (group) => {
      const net = new TinyMlp(1, tiny);
      const model = await ddp(net, { group, bucketBytes: 100, ...options });
      const count = counts[group.rank]!;
      let at = counts.slice(0, group.rank).reduce((sum, n) => sum + n, 0);
      const backward = (samples: number) => {
        net.loss(at, Math.max(samples, 1));
        at += samples;
        model.addWeight(samples, saysTotal ? { total: counts.reduce((sum, n) => sum + n, 0) } : {});
        net.autograd.backward(samples);
      };
      if (accumulates) model.noSync(() => backward(1));
      backward(accumulates ? count - 1 : count);
      await model.finish();
      return net.gradients();
    }),
  );
}

/** Returns the gradients after each rank took one sample, without weights. */
async function plainGradientsOf(size: number) {
  return values(
    await onRanks(size, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, bucketBytes: 100 });
      net.loss(group.rank, 1);
      net.autograd.backward();
      await model.finish();
      return net.gradients();
    }),
  );
}

function alone(count: number): number[] {
  const net = new TinyMlp(1);
  net.loss(0, count);
  net.autograd.backward();
  return net.gradients().flat();
}

describe('the gradient of uneven batches is that of the joined batch', () => {
  const cases: Record<string, Parameters<typeof gradientsOf>> = {
    'on three ranks': [[1, 4, 2]],
    'with an autograd that does not bind gradients': [[1, 4, 2], { tiny: { binds: false } }],
    'when it accumulates': [[2, 5, 3], { accumulates: true }],
    'when a rank has none': [[3, 0, 2]],
    'on one rank': [[3], { accumulates: true }],
    'with a known total': [[1, 4, 2], { saysTotal: true }],
    'with a known total when it accumulates, without bound gradients': [
      [2, 5, 3],
      { accumulates: true, saysTotal: true, tiny: { binds: false } },
    ],
    'with a known total when a rank has none': [[3, 0, 2], { saysTotal: true }],
    'with a known total on one rank': [[3], { accumulates: true, saysTotal: true }],
    'with a known total and a hook': [[1, 4, 2], { saysTotal: true }, { hook: averageHook }],
  };
  for (const [name, args] of Object.entries(cases))
    it(name, async () => {
      const ranks = await gradientsOf(...args);
      for (const gradients of ranks) {
        expect(gradients).toEqual(ranks[0]);
        const total = args[0].reduce((sum, n) => sum + n, 0);
        expect(largestDifference(gradients.flat(), alone(total))).toBeLessThan(1e-6);
      }
    });
});

describe('a known total of the weights', () => {
  it('of equal weights gives the plain average, bit for bit', async () => {
    expect(await gradientsOf([1, 1, 1], { saysTotal: true })).toEqual(await plainGradientsOf(3));
  });

  /** Runs one step on two ranks with what `begin` does on each; returns what each was told. */
  async function told(begin: (model: Awaited<ReturnType<typeof ddp>>, rank: number) => unknown) {
    return reasons(
      await onRanks(2, async (group) => {
        const net = new TinyMlp(1);
        const model = await ddp(net, { group });
        await begin(model as never, group.rank);
        net.loss(0, 1);
        net.autograd.backward();
        await model.finish();
      }),
    );
  }

  it('that differs between ranks is told to all of them, also in a later step', async () => {
    const outcomes = await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group });
      for (const total of [2, 2, 2 + group.rank]) {
        model.addWeight(1, { total });
        net.loss(0, 1);
        net.autograd.backward();
        await model.finish();
      }
    });
    expect(outcomes).toHaveLength(2);
    for (const error of reasons(outcomes)) {
      expect(error.code).toBe('ERR_COLL_MISMATCH');
      expect(error.message).toContain('weights of 2');
      expect(error.message).toContain('weights of 3');
    }
  });

  it('is compared with the weights in the first step of a group, and in no other', async () => {
    const exchanges = values(
      await onRanks(2, async (group) => {
        const net = new TinyMlp(1);
        const model = await ddp(net, { group });
        const counted: number[] = [];
        for (let step = 0; step < 3; step++) {
          model.addWeight(1, { total: 2 });
          net.loss(0, 1);
          net.autograd.backward();
          await model.finish();
          counted.push(group.flightRecord().filter(({ verb }) => verb === 'allGather').length);
        }
        return counted;
      }),
    );
    for (const counted of exchanges) {
      expect(counted[0]).toBeGreaterThan(0);
      expect(counted).toEqual(counted.map(() => counted[0]));
    }
  });

  it('that only one rank says is told to all of them', async () => {
    for (const error of await told((model, rank) => model.addWeight(1, rank === 0 ? { total: 2 } : {})))
      expect(error.code).toBe('ERR_COLL_MISMATCH');
  });

  it.each([0, -1, Number.NaN, Infinity, '2'])('is not %s', async (total) => {
    for (const error of await told((model) => model.addWeight(1, { total: total as number })))
      expect(error).toMatchObject({ code: 'ERR_DDP_INVALID', message: expect.stringContaining('total') });
  });

  it.each([3, 1.5])('is the sum of the weights, not %s', async (total) => {
    for (const error of await told((model) => model.addWeight(1, { total }))) {
      expect(error.code).toBe('ERR_DDP_INVALID');
      expect(error.message).toContain(`add up to 2, but the program has passed the total ${total}`);
    }
  });

  it('does not change within a step', async () => {
    const changed = (model: Awaited<ReturnType<typeof ddp>>) => {
      model.addWeight(1, { total: 4 });
      model.addWeight(1, { total: 5 });
    };
    for (const error of await told(changed)) expect(error.message).toContain('5 after 4');
  });

  it('needs data on rank 0', async () => {
    const [first] = await told(async (model, rank) => {
      if (rank === 1) return model.addWeight(1, { total: 1 });
      try {
        await model.takePartOnce({ total: 1 });
      } finally {
        model.group.abort('rank 0 has no data'); // rank 1 waits for it
      }
    });
    expect(first).toMatchObject({ code: 'ERR_DDP_INVALID', message: expect.stringContaining('rank 0') });
  });

  it('is refused inside join()', async () => {
    const outcomes = await onRanks(2, async (group) => {
      const model = await ddp(new TinyMlp(1), { group });
      await model.join(async () => model.addWeight(1, { total: 2 }));
    });
    for (const error of reasons(outcomes)) expect(error.message).toContain('inside join()');
  });

  it('has no other option beside it', async () => {
    for (const error of await told((model) => model.addWeight(1, { totl: 2 } as never)))
      expect(error.message).toContain("unknown option 'totl'");
  });
});

it('is zero where all weights are', async () => {
  const [first] = await gradientsOf([0, 0]);
  expect(first!.flat().every((value) => value === 0)).toBe(true);
});

it('with equal weights is the plain average, bit for bit', async () => {
  expect(await gradientsOf([1, 1, 1, 1])).toEqual(await plainGradientsOf(4));
});

it('refuses a negative weight', async () => {
  const outcomes = await onRanks(1, async (group) => {
    const model = await ddp(new TinyMlp(1), { group });
    model.addWeight(-1);
  });
  expect(reasons(outcomes)[0]).toMatchObject({ code: 'ERR_DDP_INVALID' });
});

it('is refused by all ranks when one forgets it', async () => {
  const outcomes = await onRanks(2, async (group) => {
    const net = new TinyMlp(1);
    const model = await ddp(net, { group });
    if (group.rank === 0) model.addWeight(2);
    net.loss(0, 1);
    net.autograd.backward();
    await model.finish();
  });
  for (const error of reasons(outcomes)) expect(error.code).toBe('ERR_COLL_MISMATCH');
});

it('does not count one whose backward threw before it began', async () => {
  const [once, again] = await Promise.all(
    [false, true].map(async (throws) => {
      const [gradients] = values(
        await onRanks(1, async (group) => {
          const net = new TinyMlp(1);
          const model = await ddp(net, { group });
          const failing = () => {
            throw new Error('freed');
          };
          if (throws) {
            expect(() => model.backward({ mul: () => ({ backward: failing }) }, { weight: 5 })).toThrow(
              'freed',
            );
          }
          net.loss(0, 2);
          model.backward(
            { mul: (weight) => ({ backward: () => net.autograd.backward(weight) }) },
            { weight: 2 },
          );
          await model.finish();
          return net.gradients();
        }),
      );
      return gradients;
    }),
  );
  expect(again).toEqual(once);
});
