// What the differentiable verbs refuse, what they compare between ranks, and what works without blocking. The gradients
// themselves are tested with processes (test/processes/across.test.ts).
import { grad, memory, noGrad, ones, scope, type Tensor, tensor, zeros } from '@ringwise/tensor';
import { describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import { type Across, across, CollectiveError, Group, loopbackGroups } from '../../../src/index.ts';
import { Value } from '../../support/own-autograd.ts';

const alone = () => across(new Group(solo(), { name: 'solo', timeoutMs: 1_000 }));
const pair = () => loopbackGroups(2, { timeoutMs: 60_000 });
const trained = (...shape: number[]): Tensor => ones(shape, { requiresGrad: true });
const numbers = (x: Tensor): unknown => x.toArray();

async function both<T>(
  groups: readonly Group[],
  call: (verbs: Across, rank: number) => PromiseLike<T>,
): Promise<T[]> {
  return await Promise.all(groups.map((group) => call(across(group), group.rank)));
}

const errorOf = async (call: () => unknown): Promise<CollectiveError> => {
  try {
    await call();
  } catch (error) {
    if (CollectiveError.is(error)) return error;
    throw error;
  }
  throw new Error('it was accepted');
};

describe('on a group that may not block', () => {
  it('works where the gradient needs no communication', async () => {
    const xs = [tensor([1, 2], { requiresGrad: true }), tensor([3, 4], { requiresGrad: true })];
    const grads = await both(pair(), async (verbs, rank) => {
      const x = xs[rank]!;
      const sum = await verbs.allReduce(x, { op: 'avg', after: 'same' });
      const all = await verbs.allGather(x, { after: 'same' });
      const first = await verbs.broadcast(x, { root: 1, after: 'same' });
      const values = [sum, all, first].map(numbers);
      sum.mul(10).sum().add(all.mul(all).sum()).add(first.sum()).backward();
      return [...values, numbers(x.grad!)];
    });
    const values = [
      [2, 3],
      [1, 2, 3, 4],
      [3, 4],
    ];
    expect(grads).toEqual([
      [...values, [5 + 2, 5 + 4]],
      [...values, [5 + 6 + 1, 5 + 8 + 1]],
    ]);
  });

  it('refuses what would have to block inside backward, before anything is sent', async () => {
    const groups = pair();
    const verbs = across(groups[0]!);
    const x = trained(2, 2);
    const calls: [string, () => unknown][] = [
      ['enter', () => verbs.enter(x)],
      ['allReduce', () => verbs.allReduce(x, { after: 'own' })],
      ['allGather', () => verbs.allGather(x, { after: 'own' })],
      ['part', () => verbs.part(x, { before: 'same' })],
      ['reduceScatter', () => verbs.reduceScatter(x)],
      ['allToAll', () => verbs.allToAll(x, { split: 0, concat: 1 })],
      ['broadcast', () => verbs.broadcast(x, { after: 'own' })],
      ['reduce', () => verbs.reduce(x)],
      ['gather', () => verbs.gather(x)],
      ['scatter', () => verbs.scatter(x)],
      ['send', () => verbs.send(x, 1)],
      ['recv', () => verbs.recv(x, 1)],
    ];
    for (const [name, call] of calls) {
      const error = await errorOf(call);
      expect([name, error.code]).toEqual([name, 'ERR_COLL_UNSUPPORTED']);
      expect(error.message).toMatch(
        `across.${name}: its gradient needs communication inside backward, which has to block, and the loopback backend may not block`,
      );
    }
    expect([groups[0]!.flightRecord(), groups[0]!.failure]).toEqual([[], null]);
  });

  it('gives the values where nothing is recorded', async () => {
    const values = await both(pair(), async (verbs, rank) =>
      noGrad(async () => {
        const x = tensor(
          [
            [1, 2],
            [3, 4],
          ],
          { requiresGrad: true },
        ).add(rank * 10);
        const plain = tensor([rank], { dtype: 'int64' });
        const message = rank === 0 ? verbs.send(x, 1, { tag: 7 }) : verbs.recv(x, 0, { tag: 7 });
        return [
          numbers(verbs.enter(x)),
          numbers(await verbs.allReduce(x, { after: 'own' })),
          numbers(await verbs.allReduce(plain, { after: 'own' })),
          numbers(verbs.part(x, { before: 'same', dim: 1 })),
          numbers(await verbs.reduceScatter(x, { dim: 1, op: 'avg' })),
          numbers(await verbs.allToAll(x, { split: 0, concat: 1 })),
          numbers(await verbs.reduce(x)),
          numbers(await verbs.gather(x, { dim: -1, root: 1 })),
          numbers(await verbs.scatter(rank === 0 ? x : zeros([1, 2]))),
          numbers(await message),
        ];
      }),
    );
    const sum = [
      [12, 14],
      [16, 18],
    ];
    expect(values).toEqual([
      [
        [
          [1, 2],
          [3, 4],
        ],
        sum,
        [1],
        [[1], [3]],
        [[6], [8]],
        [[1, 2, 11, 12]],
        sum,
        0,
        [[1, 2]],
        0,
      ],
      [
        [
          [11, 12],
          [13, 14],
        ],
        sum,
        [1],
        [[12], [14]],
        [[7], [9]],
        [[3, 4, 13, 14]],
        0,
        [
          [1, 2, 11, 12],
          [3, 4, 13, 14],
        ],
        [[3, 4]],
        [
          [1, 2],
          [3, 4],
        ],
      ],
    ]);
  });

  it('has no Sync forms', () => {
    const verbs = across(pair()[0]!);
    expect(() => verbs.allReduceSync(trained(1), { after: 'same' })).toThrow(
      'across.allReduce: the loopback backend may not block this thread',
    );
  });
});

describe('arguments', () => {
  it('have no default where the gradient depends on them', async () => {
    const verbs = alone();
    const x = trained(2);
    const calls: [string, (use: never) => unknown, string][] = [
      ['allReduce', (after) => verbs.allReduce(x, { after }), 'after'],
      ['allGather', (after) => verbs.allGather(x, { after }), 'after'],
      ['broadcast', (after) => verbs.broadcast(x, { after }), 'after'],
      ['part', (before) => verbs.part(x, { before }), 'before'],
    ];
    for (const [verb, call, name] of calls)
      for (const use of [undefined, 'sum', true])
        expect((await errorOf(() => call(use as never))).message).toMatch(
          `across.${verb}: ${name} is not usable; expected 'same' if all ranks compute the same from`,
        );
    // @ts-expect-error: the compiler asks for it, too
    await errorOf(() => verbs.allReduce(x, { op: 'avg' }));
    expect(await errorOf(() => verbs.allReduce(x, undefined as never))).toMatchObject({
      code: 'ERR_COLL_INVALID',
    });
  });

  it('refuse ops whose gradient is not that of the op', async () => {
    const verbs = alone();
    const x = trained(2);
    for (const op of ['max', 'min', 'prod', 'band', 'premulSum'] as never[])
      for (const call of [
        () => verbs.allReduce(x, { op, after: 'own' }),
        () => verbs.reduceScatter(x, { op }),
        () => verbs.reduce(x, { op }),
      ])
        expect(await errorOf(call)).toMatchObject({
          code: 'ERR_COLL_UNSUPPORTED',
          message: expect.stringContaining(`op '${op}' has no gradient here; expected 'sum' or 'avg'`),
        });
    expect((await errorOf(() => verbs.allReduce(x, { op: 'mean' as never, after: 'own' }))).message).toMatch(
      "across.allReduce: unknown op 'mean'; expected 'avg'",
    );
  });

  it('are refused under names that the verb does not have, and under names of PyTorch', async () => {
    const verbs = alone();
    const x = trained(2);
    const calls: Record<string, (options: never) => unknown> = {
      enter: (options) => verbs.enter(x, options),
      allReduce: (options) => verbs.allReduce(x, options),
      allGather: (options) => verbs.allGather(x, options),
      part: (options) => verbs.part(x, options),
      reduceScatter: (options) => verbs.reduceScatter(x, options),
      allToAll: (options) => verbs.allToAll(x, options),
      broadcast: (options) => verbs.broadcast(x, options),
      reduce: (options) => verbs.reduce(x, options),
      gather: (options) => verbs.gather(x, options),
      scatter: (options) => verbs.scatter(x, options),
      send: (options) => verbs.send(x, 0, options),
      recv: (options) => verbs.recv(x, 0, options),
    };
    const told = async (name: string, options: unknown) =>
      (await errorOf(() => calls[name]!(options as never))).message;
    for (const name of Object.keys(calls)) {
      expect(await told(name, { timeout: 5 })).toMatch(
        `across.${name}: unknown option 'timeout'; expected 'timeoutMs'`,
      );
      expect(await told(name, { async_op: true })).toMatch("unknown option 'async_op'");
      expect(await told(name, null)).toMatch(`across.${name}: options are null; expected an object`);
      expect(await told(name, { timeoutMs: 0 })).toMatch('timeoutMs is not usable');
    }
    expect(await told('broadcast', { src: 0 })).toMatch("unknown option 'src'; expected 'root'");
  });

  it('are checked before anything is sent', async () => {
    const groups = pair();
    const verbs = across(groups[0]!);
    const x = zeros([2, 3]);
    const wrong: [() => unknown, string][] = [
      [() => verbs.allReduce(new Float32Array(2) as never, { after: 'same' }), 'call the verb on the group'],
      [() => verbs.enter(null as never), 'across.enter: expected a tensor'],
      [() => verbs.allReduce(x, { after: 'same', average: true } as never), "unknown option 'average'"],
      [
        () => verbs.allReduce(x, { after: 'same', timeoutMs: 0 }),
        'across.allReduce: timeoutMs is not usable',
      ],
      [
        () => verbs.allGather(x, { after: 'same', dim: 2 }),
        'dim is not usable; expected a dimension from -2 to 1, got 2',
      ],
      [() => verbs.allGather(zeros([]), { after: 'same' }), 'expected a tensor with dimensions'],
      [
        () => verbs.allGather(x, { after: 'same', sizes: [3, 2] }),
        "sizes is not usable; expected a length for each of 2 ranks, this rank's being 2, got [3, 2]",
      ],
      [() => verbs.allGather(x, { after: 'same', sizes: [2] }), 'sizes is not usable'],
      [
        () => verbs.reduceScatter(x, { dim: 1 }),
        'dimension 1 cannot be split evenly; expected a multiple of 2, got 3',
      ],
      [() => verbs.reduceScatter(x, { dim: 1, sizes: [1, 1] }), 'together 3, got [1, 1]'],
      [() => verbs.part(x, { before: 'own', dim: 1, sizes: [4, -1] }), 'together 3'],
      [() => verbs.allToAll(x, { split: 0 } as never), 'concat is not usable'],
      [() => verbs.allToAll(x, { split: 1, concat: 0 }), 'Pass sendSizes and recvSizes for parts'],
      [() => verbs.allToAll(x, { split: 0, concat: 1, sendSizes: [1, 1] }), 'only one is given'],
      [
        () => verbs.allToAll(x, { split: 1, concat: 0, sendSizes: [1, 2], recvSizes: [1, 5] }),
        "recvSizes is not usable; expected a length for each of 2 ranks, this rank's being 2",
      ],
      [() => verbs.send(x, 1, { tag: 2 ** 26 }), 'across.send: tag is not usable; expected 0 to 67108863'],
      [
        () => verbs.recv(x, Symbol.for('ringwise.anySource') as never),
        'across.recv: peer is not a rank of the group',
      ],
      [() => verbs.send(x, 2), 'peer is not a rank of the group; expected 0 to 1, got 2'],
      [() => verbs.broadcast(x, { root: 5, after: 'same' }), 'root is not a rank of the group'],
    ];
    for (const [call, text] of wrong) expect((await errorOf(call)).message).toContain(text);
    expect([groups[0]!.failure, groups[0]!.flightRecord()]).toEqual([null, []]);
  });
});

describe('ranks', () => {
  it('compare what they do with the result', async () => {
    const outcomes = await Promise.allSettled(
      pair().map((group) =>
        across(group).allReduce(zeros([2]), { after: group.rank === 0 ? 'same' : 'own', label: 'logits' }),
      ),
    );
    for (const outcome of outcomes)
      expect(String((outcome as PromiseRejectedResult).reason)).toMatch(
        'labelled "across 1: allReduce logits of [2], after own, without gradient" but rank 0 called allReduce sum 2 × float32 labelled "across 1: allReduce logits of [2], after same"',
      );
  });

  it('compare shapes and dimensions, also where the lengths are equal', async () => {
    const messageOf = async (
      call: (verbs: Across, isFirst: boolean) => PromiseLike<unknown>,
    ): Promise<string> => {
      const outcomes = await Promise.allSettled(pair().map((group) => call(across(group), group.rank === 0)));
      return String((outcomes[0] as PromiseRejectedResult).reason);
    };
    expect(
      await messageOf((verbs, isFirst) =>
        verbs.broadcast(zeros(isFirst ? [2, 3] : [3, 2]), { after: 'same' }),
      ),
    ).toMatch(/broadcast of \[3, 2\], after same.* but rank 0 .*broadcast of \[2, 3\], after same/);
    expect(
      await messageOf((verbs, isFirst) =>
        verbs.allGather(zeros([2, 2]), { after: 'same', dim: isFirst ? 0 : -1 }),
      ),
    ).toMatch(/allGather of \[2, ·\], after same.* but rank 0 .*allGather of \[·, 2\], after same/);
    expect(
      await messageOf((verbs, isFirst) =>
        verbs.allToAll(zeros([2, 2]), isFirst ? { split: 0, concat: 1 } : { split: 1, concat: 0 }),
      ),
    ).toMatch(/allToAll of \[·, ·\], 1 → 0.* but rank 0 .*allToAll of \[·, ·\], 0 → 1/);
  });

  it('compare how many verbs they have called', async () => {
    const [first, second] = pair();
    noGrad(() => across(first!).enter(trained(1)));
    const x = zeros([1]);
    const outcomes = await Promise.allSettled(
      [first!, second!].map((group) => across(group).allReduce(x.clone(), { after: 'same' })),
    );
    expect(String((outcomes[0] as PromiseRejectedResult).reason)).toMatch(
      /across 1: .*across 2: |across 2: .*across 1: /,
    );
  });
});

describe('memory', () => {
  it('is new, so that the operand keeps its values and its backward', async () => {
    const verbs = alone();
    const x = tensor([1, 2], { requiresGrad: true });
    const square = x.mul(x);
    const y = await verbs.allReduce(square, { after: 'same' });
    noGrad(() => y.detach().fill_(9));
    square.sum().backward();
    expect(numbers(x.grad!)).toEqual([2, 4]);
  });

  it('belongs to the scope of the call, and intermediates go at its end', async () => {
    const verbs = alone();
    const x = trained(8, 8);
    const run = () =>
      scope(async () => {
        const y = await verbs.allGather(x, { dim: 1, after: 'own' });
        const z = verbs.allToAllSync(y, { split: 0, concat: 1 });
        z.sum().backward();
      });
    await run();
    const before = memory().tensors;
    for (let i = 0; i < 5; i++) await run();
    expect(memory().tensors).toBe(before);
  });

  it('is not recorded inside noGrad(), even where the call ends outside', async () => {
    const y = await noGrad(() => alone().allReduce(trained(2), { after: 'same' }));
    expect(y.requiresGrad).toBe(false);
  });

  it('of a saved value must not be written by a verb of the group', async () => {
    const [group] = loopbackGroups(1);
    const x = tensor([1, 2], { requiresGrad: true });
    const saved = x.mul(2);
    const loss = saved.mul(saved).sum();
    const refused = await errorOf(() => group!.allReduce(saved));
    expect(refused.message).toMatch(
      /must not write this buffer.* use across\(group\); .*noGrad\(\(\) => …\)/,
    );
    expect((await errorOf(() => group!.allReduce(x))).message).toMatch(
      'for a result with a gradient, use across(group)',
    );
    await noGrad(() => group!.allReduce(saved));
    expect(() => loss.backward()).toThrow("a value that 'mul' saved was changed in place afterwards");
  });
});

describe('the gradient of a gradient', () => {
  it('is refused by name', async () => {
    const x = trained(2);
    const y = await alone().allReduce(x.mul(x), { after: 'same' });
    expect(() => grad(y.sum(), [x], { createGraph: true })).toThrow(
      "createGraph needs the gradient of every operation as tensors, which 'allReduce' does not have",
    );
  });
});

describe('any autograd', () => {
  it('takes part by the contract alone', async () => {
    const results = await both(pair(), async (verbs, rank) => {
      const x = new Value([rank + 1, 10]);
      const y = await verbs.allReduce(x, { op: 'avg', after: 'same' });
      y.backward([1, 4]);
      return [[...y.data], [...x.grad]];
    });
    expect(results).toEqual([
      [
        [1.5, 10],
        [0.5, 2],
      ],
      [
        [1.5, 10],
        [0.5, 2],
      ],
    ]);
  });
});
