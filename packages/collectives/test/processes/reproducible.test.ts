// Tests reproducible reductions: on loopback groups, and on processes over the host backend.
import { startRanks, values } from '@ringwise/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { reproducibleDigests } from '../../contract/scenarios/reproducible.ts';
import { type Group, loopbackGroups } from '../../src/index.ts';

async function onAll<T>(groups: readonly Group[], call: (group: Group) => PromiseLike<T>): Promise<T[]> {
  const outcomes = await Promise.all(groups.map(call));
  await Promise.all(groups.map((group) => group.close()));
  return outcomes;
}

describe('a reproducible allReduce of eight shards', () => {
  let expected: string[];
  beforeAll(async () => {
    expected = (await onAll(loopbackGroups(1), reproducibleDigests))[0]!;
  });

  it.each([2, 3, 8, 11])('has the same bits on %i ranks as on one', async (size) => {
    for (const digests of await onAll(loopbackGroups(size), reproducibleDigests))
      expect(digests).toEqual(expected);
  });

  const module = new URL('../support/reproducible-ranks.ts', import.meta.url);
  it.each([
    [1, ''],
    [2, ''],
    [3, ''],
    [4, ''],
    [8, ''],
    [4, 'ring'],
    [3, 'tree'],
    [4, 'halving-doubling'],
  ])('has them on the host backend with %i processes, algorithm %s', async (size, algorithm) => {
    const env: Record<string, string> = algorithm === '' ? {} : { RINGWISE_ALGO_ALLREDUCE: algorithm };
    const { results } = await startRanks(size, module, 'digests', { env });
    for (const digests of values<string[]>(await results)) expect(digests).toEqual(expected);
  });
});

it('is refused by all ranks if some have contributions and others none', async () => {
  const errors = await onAll(loopbackGroups(2), (group) => {
    const x = Float32Array.of(1, 2, 3);
    const options = group.rank === 1 ? { contributions: [x.slice()] } : { reproducible: true };
    return group.allReduce(x, options).catch((error: Error) => error);
  });
  for (const error of errors) expect(error).toMatchObject({ code: 'ERR_COLL_MISMATCH' });
  const module = new URL('../support/reproducible-ranks.ts', import.meta.url);
  const { results } = await startRanks(2, module, 'mixed');
  for (const { code, message } of values<{ code: string; message: string }>(await results)) {
    expect(code).toBe('ERR_COLL_MISMATCH');
    expect(message).toMatch(/allReduce reproducible sum 3 × float32/);
  }
});

describe('a reproducible reduction', () => {
  const x = () => new Float32Array([1, 2, 3]);

  it('can have no addends on some ranks, or on all', async () => {
    const sums = await onAll(loopbackGroups(3), async (group) => {
      const [some, none] = [x(), x()];
      await group.allReduce(some, { contributions: group.rank === 1 ? [x(), x()] : [], op: 'avg' });
      await group.allReduce(none, { contributions: [], op: 'avg' });
      return [[...some], [...none]];
    });
    for (const sum of sums)
      expect(sum).toEqual([
        [1, 2, 3],
        [0, 0, 0],
      ]);
  });

  it('may write over one of its contributions', async () => {
    const [result] = await onAll(loopbackGroups(1), async (group) => {
      const [a, b] = [x(), x()];
      await group.allReduce(a, { contributions: [a, b, a] });
      return [...a];
    });
    expect(result).toEqual([3, 6, 9]);
  });

  it('keeps -0, infinities and NaN, and overflows only where the sum does', async () => {
    const max = 3.4028234663852886e38;
    const rows = [
      [-0, Infinity, Infinity, max, max, Number.NaN],
      [-0, 1, -Infinity, max, max, 1],
      [-0, 1, 1, -max, 1, 1],
    ];
    const sums = await onAll(loopbackGroups(3), async (group) => {
      const own = Float32Array.from(rows[group.rank]!);
      await group.allReduce(own, { reproducible: true });
      return [...own];
    });
    for (const sum of sums) expect(sum).toEqual([-0, Infinity, Number.NaN, max, Infinity, Number.NaN]);
  });

  it.each([
    [
      'an op that has no reproducible form',
      (group: Group) => group.allReduce(x(), { reproducible: true, op: 'max' }),
      'ERR_COLL_UNSUPPORTED',
      /no reproducible 'max' of float32/,
    ],
    [
      'integers',
      (group: Group) => group.reduce(new Int32Array(3), { reproducible: true }),
      'ERR_COLL_UNSUPPORTED',
      /no reproducible 'sum' of int32/,
    ],
    [
      'a list',
      (group: Group) => group.allReduce([x(), x()], { reproducible: true }),
      'ERR_COLL_INVALID',
      /one buffer/,
    ],
    [
      'a contribution of another length',
      (group: Group) => group.allReduce(x(), { contributions: [new Float32Array(2)] }),
      'ERR_COLL_INVALID',
      /expected 3 elements, got 2/,
    ],
    [
      'a contribution of another dtype',
      (group: Group) => group.allReduce(x(), { contributions: [new Float64Array(3)] }),
      'ERR_COLL_INVALID',
      /differ in dtype/,
    ],
    [
      'a missing input',
      (group: Group) => group.reduceScatter(null, x()),
      'ERR_COLL_INVALID',
      /cannot use null as a buffer/,
    ],
  ] as const)('refuses %s, and harms nothing', async (_, call, code, message) => {
    const [error] = await onAll(loopbackGroups(1), async (group) => {
      const error = await call(group).catch((error: Error) => error);
      await group.barrier();
      return error;
    });
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
