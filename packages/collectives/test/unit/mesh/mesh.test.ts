import { describe, expect, it } from 'vitest';
import { across, type CollectiveError, type Group, loopbackGroups, mesh } from '../../../src/index.ts';
import { coordinatesOf, lineOf, sizesOf } from '../../../src/mesh/layout.ts';

const all = <T>(groups: readonly Group[], call: (group: Group) => PromiseLike<T>) =>
  Promise.all(groups.map(call));

describe('the layout of a mesh', () => {
  const refuse = (failure: unknown): never => {
    throw new Error(JSON.stringify(failure));
  };

  it('lets the last axis vary fastest, and rest take what is left', () => {
    const shape = sizesOf({ dp: 'rest', cp: 1, tp: 3 }, 6, refuse);
    expect(shape).toEqual({ dp: 2, cp: 1, tp: 3 });
    expect(coordinatesOf(4, shape)).toEqual({ dp: 1, cp: 0, tp: 1 });
    expect(lineOf(4, shape, ['tp'])).toEqual({ color: 1, key: 1, members: [3, 4, 5] });
    expect(lineOf(4, shape, ['dp'])).toEqual({ color: 1, key: 1, members: [1, 4] });
    expect(lineOf(4, shape, ['tp', 'dp'])).toEqual({ color: 0, key: 3, members: [0, 3, 1, 4, 2, 5] });
  });

  it('puts every rank on one line of each axis, at the index of the rank there', () => {
    const shape = { a: 2, b: 3, c: 2 };
    for (const parts of [['a'], ['b'], ['c'], ['a', 'b'], ['c', 'a'], ['a', 'b', 'c']])
      for (let rank = 0; rank < 12; rank++) {
        const line = lineOf(rank, shape, parts);
        expect(line.members[line.key]).toBe(rank);
        for (const other of line.members) expect(lineOf(other, shape, parts).members).toEqual(line.members);
      }
  });
});

describe('mesh()', () => {
  it('gives a promise, which is no mesh', async () => {
    const [group] = loopbackGroups(1);
    const pending = mesh(group!, { dp: 1 });
    const grid = pending as unknown as { axis: unknown; at: unknown };
    const sentence = (member: string) =>
      `grid.${member}: mesh() gives a promise, which was not awaited; expected const grid = await mesh().`;
    expect(() => grid.axis).toThrow(sentence('axis'));
    expect(() => grid.at).toThrow(sentence('at'));
    await (await pending).close();
    await group!.close();
  });

  it('gives each line of 2 × 3 ranks a group, and combinations too', async () => {
    const groups = loopbackGroups(6, { name: 'world', timeoutMs: 60_000 });
    const grids = await all(groups, (group) =>
      mesh(group, { dp: 2, tp: 'rest' }, { flat: { whole: ['dp', 'tp'], turned: ['tp', 'dp'] } }),
    );
    expect(grids.map(({ at }) => [at.dp, at.tp])).toEqual(
      [0, 1].flatMap((dp) => [0, 1, 2].map((tp) => [dp, tp])),
    );
    const grid = grids[4]!;
    expect(grid.shape).toEqual({ dp: 2, tp: 3 });
    const linesOf = (name: 'dp' | 'tp' | 'whole' | 'turned') => {
      const { name: title, ranks, rank } = grid.axis(name);
      return [title, ranks, rank];
    };
    expect(linesOf('dp')).toEqual(['world.dp[1,4]', [1, 4], 1]);
    expect(linesOf('tp')).toEqual(['world.tp[3-5]', [3, 4, 5], 1]);
    expect(linesOf('whole')[1]).toEqual([0, 1, 2, 3, 4, 5]);
    expect(linesOf('turned')[1]).toEqual([0, 3, 1, 4, 2, 5]);
    expect([grid.rankOf({ dp: 0, tp: 2 }), grid.rankOf({ tp: 0 }), grid.rankOf({})]).toEqual([2, 3, 4]);
    const sums = await Promise.all(
      grids.map(async (own) => {
        const [x, y] = [Float32Array.of(own.group.rank), Float32Array.of(own.group.rank)];
        await Promise.all([own.axis('tp').allReduce(x), own.axis('dp').allReduce(y)]);
        return [x[0], y[0]];
      }),
    );
    expect(sums.map(([x]) => x)).toEqual([3, 3, 3, 12, 12, 12]);
    expect(sums.map(([, y]) => y)).toEqual([3, 5, 7, 3, 5, 7]);
    await all(groups, (group) => group.close());
    expect(grid.axis('tp').isClosed).toBe(true);
  });

  it('is closed without its group, and gives no groups then', async () => {
    const groups = loopbackGroups(2, { timeoutMs: 60_000 });
    const grids = await all(groups, (group) => mesh(group, { dp: 1, tp: 2 }, { name: 'm', timeoutMs: 70 }));
    const tp = grids[0]!.axis('tp');
    expect([tp.name, tp.timeoutMs, grids[0]!.axis('dp').size]).toEqual(['m.tp[0-1]', 70, 1]);
    await Promise.all(grids.map((grid) => grid.close()));
    await grids[0]!.close();
    expect([tp.isClosed, grids[0]!.isClosed]).toEqual([true, true]);
    expect(() => grids[0]!.axis('tp')).toThrow(
      expect.objectContaining({
        code: 'ERR_COLL_CLOSED',
        message: expect.stringContaining('the mesh is closed'),
      }),
    );
    await all(groups, (group) => group.barrier());
  });

  it('is refused with a sentence for axes that do not fit, without harm to the group', async () => {
    const [group, other] = loopbackGroups(6, { timeoutMs: 60_000 });
    const messageOf = async (axes: unknown, options?: unknown): Promise<string> => {
      try {
        await mesh(group!, axes as { a: number }, options as never);
      } catch (error) {
        expect((error as CollectiveError).code).toBe('ERR_COLL_INVALID');
        return (error as Error).message;
      }
      return 'accepted';
    };
    const wrong: [unknown, unknown, string][] = [
      [{ dp: 2, tp: 2 }, {}, 'do not multiply to the size of the group; expected 6, got 2 × 2 = 4'],
      [{ dp: 'rest', tp: 4 }, {}, "no whole number is left for axis 'dp'"],
      [{ dp: 'rest', tp: 'rest' }, {}, "both 'dp' and 'tp' take the rest"],
      [
        { dp: 0, tp: 'rest' },
        {},
        "the size of axis 'dp' is not usable; expected a number of ranks or 'rest', got 0",
      ],
      [{ dp: '2', tp: 3 }, {}, "the size of axis 'dp' is not usable"],
      [
        { 1: 6 },
        {},
        "the name of an axis is not usable; expected letters, digits and _, no digit first, got '1'",
      ],
      [{}, {}, 'a size for each of one or more axes'],
      [[2, 3], {}, 'axes is not usable'],
      [null, {}, 'axes is not usable'],
      [{ dp: 2, tp: 3 }, { flat: { dp: ['tp'] } }, "'dp' names an axis and a combination"],
      [
        { dp: 2, tp: 3 },
        { flat: { all: ['dp', 'pp'] } },
        "the mesh has no axis 'pp'; expected one of dp, tp",
      ],
      [
        { dp: 2, tp: 3 },
        { flat: { all: ['dp', 'dp'] } },
        'flat.all is not usable; expected a list of axes, each once',
      ],
      [{ dp: 2, tp: 3 }, { flat: { all: [] } }, 'flat.all is not usable'],
      [{ dp: 2, tp: 3 }, { flat: { all: 'dp' } }, 'flat.all is not usable'],
      [{ dp: 2, tp: 3 }, { flat: ['dp'] }, 'flat is not usable'],
      [{ dp: 2, tp: 3 }, { flats: {} }, "mesh: unknown option 'flats'; did you mean 'flat'"],
      [{ dp: 2, tp: 3 }, { timeoutMs: 0 }, 'mesh: timeoutMs is not usable'],
      [{ dp: 2, tp: 3 }, { name: '' }, 'mesh: name is not usable'],
    ];
    for (const [axes, options, text] of wrong)
      expect([axes, options, await messageOf(axes, options)]).toEqual([
        axes,
        options,
        expect.stringContaining(text),
      ]);
    expect([group!.failure, other!.failure]).toEqual([null, null]);
  });

  it('compares the axes of all ranks', async () => {
    const groups = loopbackGroups(4, { timeoutMs: 60_000 });
    const outcomes = await Promise.allSettled(
      groups.map((group) => mesh(group, group.rank === 3 ? { a: 4, b: 1 } : { a: 2, b: 2 })),
    );
    for (const outcome of outcomes)
      expect(String((outcome as PromiseRejectedResult).reason)).toMatch(
        'rank 3 called barrier labelled "mesh a=a:4 b=b:1" but rank 0 called barrier labelled "mesh a=a:2 b=b:2"',
      );
  });

  it('refuses coordinates and names that it does not have', async () => {
    const [group] = loopbackGroups(1);
    const grid = await mesh(group!, { dp: 1, tp: 1 }, { flat: { all: ['dp', 'tp'] } });
    expect(() => grid.axis('pp' as never)).toThrow(
      "mesh.axis: the mesh has no axis 'pp'; expected one of dp, tp, all (group",
    );
    expect(() => grid.rankOf({ all: 0 } as never)).toThrow('mesh.rankOf: the mesh has no axis');
    for (const index of [1, -1, 0.5, '0', undefined])
      expect(() => grid.rankOf({ tp: index } as never)).toThrow(
        "mesh.rankOf: the index on axis 'tp' is not usable; expected 0 to 0",
      );
    expect(() => grid.rankOf(3 as never)).toThrow("mesh.rankOf: the argument 'coordinates' is not usable");
  });
});

it('needs a group, as across() does', async () => {
  const refused = { code: 'ERR_COLL_INVALID' };
  for (const group of [undefined, null, {}, 5] as never[]) {
    await expect(mesh(group, { dp: 1 })).rejects.toMatchObject(refused);
    expect(() => across(group)).toThrow(expect.objectContaining(refused));
  }
  await expect(mesh(undefined as never, { dp: 1 })).rejects.toThrow(
    'mesh: group is not usable; expected a group, as init() gives one, got undefined',
  );
  await expect(mesh(Promise.resolve() as never, { dp: 1 })).rejects.toThrow(
    'got a promise, which needs an await',
  );
});

it('is refused, by its own name, once the group is closed', async () => {
  const [group] = loopbackGroups(1);
  await group!.close();
  await expect(mesh(group!, { dp: 1 })).rejects.toThrow('mesh: the group is closed (group');
});
