// Trains 50 steps with each communication hook, on several world sizes.
import { asBuffer, bufferSymbol, type Group, narrowFloats } from '@ringwise/collectives';
import { describe, expect, it } from 'vitest';
import {
  assertInSync,
  type CommHook,
  compressHook,
  type DdpOptions,
  ddp,
  type GradBucket,
  PeriodicAverager,
  plainHook,
  postLocalSGDHook,
  powerSGDHook,
  wireHook,
} from '../../../src/index.ts';
import { largestDifference, onRanks, reasons, values } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

const steps = 50;

function alone(size: number): number[] {
  const net = new TinyMlp(1);
  for (let step = 0; step < steps; step++) {
    net.autograd.zeroGrad();
    net.loss(size * (step % 4), size);
    net.autograd.backward();
    net.autograd.step(0.2);
  }
  return net.parameters();
}

/** Trains with one sample for each rank and step. Every rank makes its own hook. */
async function train(size: number, makeHook: () => CommHook | undefined, options: Partial<DdpOptions> = {}) {
  const ranks = values(
    await onRanks(size, async (group) => {
      const net = new TinyMlp(1);
      const hook = makeHook();
      const model = await ddp(net, { group, bucketBytes: 100, ...options, ...(hook && { hook }) });
      for (let step = 0; step < steps; step++) {
        net.autograd.zeroGrad();
        net.loss(size * (step % 4) + group.rank, 1);
        net.autograd.backward();
        await model.finish();
        net.autograd.step(0.2);
      }
      await assertInSync(net, group);
      return net.parameters();
    }),
  );
  return ranks[0]!;
}

const distanceFromStart = (parameters: number[]) =>
  largestDifference(parameters, new TinyMlp(1).parameters());

describe('trains as one process on the joined batch', () => {
  const hooks: Record<string, readonly [make: () => CommHook | undefined, tolerance: number]> = {
    'without a hook': [() => undefined, 1e-5],
    plain: [() => plainHook, 1e-5],
    float16: [() => compressHook('float16'), 2e-3],
    bfloat16: [() => compressHook('bfloat16'), 2e-2],
    'a wire of int8': [() => wireHook('int8'), 1e-5], // loopback has no wire
    'a wire of bfloat16': [() => wireHook('bfloat16'), 1e-5],
    'PowerSGD of full rank': [() => powerSGDHook({ startStep: 2, rank: 9, minCompression: 0 }), 1e-3],
    'PowerSGD before its start': [() => powerSGDHook(), 1e-5],
  };
  for (const [name, [make, tolerance]] of Object.entries(hooks))
    for (const size of [2, 3, 8])
      it(`${name}, ${size} ranks`, async () => {
        const expected = alone(size);
        expect(distanceFromStart(expected)).toBeGreaterThan(0.1);
        expect(largestDifference(await train(size, make), expected)).toBeLessThan(tolerance);
      });
  for (const size of [16, 64])
    it(`without a hook, ${size} ranks`, async () => {
      expect(largestDifference(await train(size, () => undefined), alone(size))).toBeLessThan(1e-5);
    });
});

it('the plain hook gives the bits of no hook', async () => {
  expect(await train(3, () => plainHook)).toEqual(await train(3, () => undefined));
});

it('a hook of the program takes the place of the average', async () => {
  const user: CommHook = function* (bucket, group) {
    const data = bucket.data as Float32Array;
    for (let i = 0; i < data.length; i++) data[i]! /= group.size;
    yield group.allReduce(bucket);
  };
  expect(largestDifference(await train(2, () => user), await train(2, () => undefined))).toBeLessThan(1e-6);
});

it('hooks keep up with buckets that are laid out anew', async () => {
  const plain = await train(2, () => undefined);
  const rebuilt = await train(2, () => powerSGDHook({ startStep: 2, rank: 9, minCompression: 0 }), {
    rebuild: true,
  });
  expect(largestDifference(plain, rebuilt)).toBeLessThan(1e-3);
});

it('hooks average with weights too', async () => {
  const run = (hook: CommHook) =>
    onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, hook });
      const count = group.rank === 0 ? 1 : 3;
      net.loss(group.rank, count);
      model.addWeight(count);
      net.autograd.backward(count);
      await model.finish();
      return net.gradients().flat();
    });
  const [plain] = values(await run(plainHook));
  const [half] = values(await run(compressHook('float16')));
  expect(largestDifference(plain!, half!)).toBeLessThan(1e-3);
  expect(half).not.toEqual(plain);
});

describe('PowerSGD of rank 1 loses nothing for good: what one step leaves out comes in later ones', () => {
  const weights: Record<
    string,
    (step: number) => { readonly weight: number; readonly total?: number } | null
  > = {
    'without weights': () => null,
    'with weights that differ between steps': (step) => ({ weight: step % 2 === 0 ? 1 : 8 }),
    'with a total that differs between steps': (step) => {
      const weight = step % 10 === 9 ? 1 : 8;
      return { weight, total: 2 * weight };
    },
  };
  it.each(Object.keys(weights))('%s', async (name) => {
    const sums = await sumsOf(weights[name]!);
    const scale = Math.max(...sums.exact.map(Math.abs));
    expect(largestDifference(sums.mean, sums.exact)).toBeLessThan(scale / 10);
  });
});

/** Computes the same gradient in 60 steps. Returns it, and the mean of what the hook has made of it. */
async function sumsOf(
  weightsOf: (step: number) => { readonly weight: number; readonly total?: number } | null,
) {
  const [sums] = values(
    await onRanks(2, async (group) => {
      const hook = powerSGDHook({ startStep: 2, minCompression: 1 });
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, hook });
      const sum = new Float64Array(net.parameters().length);
      const exact: number[] = [];
      for (let step = 0; step < 60; step++) {
        net.autograd.zeroGrad();
        net.loss(group.rank, 1); // the same gradient in every step
        const { weight = 1, ...total } = weightsOf(step) ?? {};
        if (weightsOf(step) !== null) model.addWeight(weight, total);
        net.autograd.backward(weight);
        await model.finish();
        const gradient = net.gradients().flat();
        if (step === 0) exact.push(...gradient);
        if (step >= 2) for (const [i, value] of gradient.entries()) sum[i]! += value / 58;
      }
      return { mean: [...sum], exact };
    }),
  );
  return sums!;
}

it('PowerSGD forgets an overflow, as steps without one follow', async () => {
  const ranks = values(
    await onRanks(2, async (group) => {
      const net = new TinyMlp(1);
      const hook = powerSGDHook({ startStep: 2, minCompression: 0, rank: 2 });
      const model = await ddp(net, { group, hook });
      const areFinite = [];
      for (let step = 0; step < 6; step++) {
        net.autograd.zeroGrad();
        net.loss(step + group.rank, 1);
        net.autograd.backward(step === 3 && group.rank === 1 ? Infinity : 1);
        await model.finish();
        areFinite.push(net.gradients().flat().every(Number.isFinite));
      }
      return areFinite;
    }),
  );
  for (const areFinite of ranks) expect(areFinite).toEqual([true, true, true, false, true, true]);
});

it('compression averages float8 gradients as they are', async () => {
  const { from, to } = narrowFloats.float8_e5m2;
  const averages = values(
    await onRanks(2, async (group) => {
      const data = Uint8Array.of(to(group.rank + 1), to(-4 * group.rank));
      const view = asBuffer({ data, dtype: 'float8_e5m2' });
      const contents = { dtype: view.dtype, data, index: 0, isLast: true, label: 'x', gradients: [] };
      const bucket: GradBucket = { ...contents, [bufferSymbol]: () => view };
      for (const work of compressHook('bfloat16')(bucket, group)) await work;
      return [...data].map(from);
    }),
  );
  expect(averages).toEqual([
    [1.5, -2],
    [1.5, -2],
  ]);
});

it('post-local SGD lets ranks go apart, and averages parameters every period', async () => {
  const history = values(
    await onRanks(4, async (group) => {
      const pair = await group.split(group.rank >> 1);
      const net = new TinyMlp(1);
      const model = await ddp(net, { group, hook: postLocalSGDHook({ startStep: 2, subgroup: pair }) });
      const averager = new PeriodicAverager(net, group, { period: 3, warmupSteps: 2 });
      const seen = [];
      for (let step = 0; step < 6; step++) {
        net.autograd.zeroGrad();
        net.loss(group.rank, 1);
        net.autograd.backward();
        await model.finish();
        net.autograd.step(0.2);
        const isAveraged = await averager.afterStep();
        seen.push({ isAveraged, parameters: net.parameters() });
      }
      return seen;
    }),
  );
  const isEqual = (a: number, b: number, step: number) =>
    history[a]![step]!.parameters.every((value, i) => value === history[b]![step]!.parameters[i]);
  expect(history[0]!.map(({ isAveraged }) => isAveraged)).toEqual([false, false, true, false, false, true]);
  expect([0, 1, 2, 3, 4, 5].map((step) => isEqual(0, 1, step))).toEqual(Array(6).fill(true));
  expect([0, 1, 2, 3, 4, 5].map((step) => isEqual(0, 2, step))).toEqual([
    true,
    true,
    true,
    false,
    false,
    true,
  ]);
});

for (const [moment, hook] of [
  [
    'at once',
    function* (_, group): ReturnType<CommHook> {
      if (group.size > 1) throw new Error('in the hook');
      yield group.barrier();
    },
  ],
  [
    'after its operation',
    function* (bucket, group): ReturnType<CommHook> {
      yield group.allReduce(bucket);
      if (group.rank === 1) throw new Error('in the hook');
      yield group.barrier();
    },
  ],
] as const satisfies readonly (readonly [string, CommHook])[])
  it(`an error that a hook throws ${moment} ends all ranks`, async () => {
    const errors = reasons(
      await onRanks(2, async (group) => {
        const net = new TinyMlp(1);
        const model = await ddp(net, { group, hook });
        net.loss(0, 1);
        net.autograd.backward();
        await model.finish();
      }),
    );
    for (const error of errors) expect(error.message).toContain('in the hook');
  });

describe('a hook that is no generator is refused, on all ranks:', () => {
  const sum = (bucket: GradBucket, group: Group) => group.allReduce(bucket);
  const hooks: Record<string, readonly [hook: unknown, got: string]> = {
    'an async function': [async (b: GradBucket, g: Group) => void (await sum(b, g)), 'an async function.'],
    'an async generator': [async function* () {}, 'an async generator function (async function*).'],
    'no function': [{}, 'an object.'],
    'a name': ['allreduce', "'allreduce'."],
    'a function that returns nothing': [
      (b: GradBucket, g: Group) => void sum(b, g),
      'a function that returns undefined.',
    ],
    'one that returns what it starts': [sum, 'a function that returns a promise.'],
    'one that returns a rejected promise': [
      () => Promise.reject(new Error('unseen')),
      'a function that returns a promise.',
    ],
    'one that returns a list': [
      (b: GradBucket, g: Group) => [sum(b, g)],
      'a function that returns an array.',
    ],
    'a generator that yields nothing': [
      function* () {
        yield;
      },
      'undefined.',
    ],
    'a generator that yields promises': [
      function* (b: GradBucket, g: Group) {
        yield sum(b, g).then(() => {});
      },
      'a promise.',
    ],
  };
  for (const [name, [hook, got]] of Object.entries(hooks))
    it(name, async () => {
      const outcomes = await onRanks(2, async (group) => {
        const net = new TinyMlp(1);
        const model = await ddp(net, { group, hook: hook as CommHook });
        net.loss(0, 1);
        net.autograd.backward();
        await model.finish();
      });
      const [error] = reasons(outcomes);
      expect(error).toMatchObject({ code: 'ERR_DDP_INVALID' });
      expect(error!.message).toMatch(
        /^ddp: hook: expected (a generator function \(function\*\)|every value)/,
      );
      expect(error!.message.endsWith(`got ${got}`), error!.message).toBe(true);
    });

  it('but a function that returns the generator of another hook is accepted', async () => {
    const wrapped: CommHook = (bucket, group) => plainHook(bucket, group);
    expect(await train(2, () => wrapped)).toEqual(await train(2, () => plainHook));
  });
});
