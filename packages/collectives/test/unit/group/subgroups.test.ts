import { MemoryStore } from '@ringwise/store';
import { afterEach, describe, expect, it } from 'vitest';
import { solo } from '../../../src/backends/solo.ts';
import { nameOf } from '../../../src/group/members/subgroups.ts';
import { Group, init, loopbackGroups } from '../../../src/index.ts';

const all = <T>(groups: readonly Group[], call: (group: Group) => PromiseLike<T>) =>
  Promise.all(groups.map(call));

describe('a subgroup', () => {
  it('is called after its parent and the ranks there', () => {
    expect(nameOf('world', [0, 2, 3, 4, 9])).toBe('world[0,2-4,9]');
    expect(nameOf('world[0-3]', [3, 2, 1])).toBe('world[0-3][3,2,1]');
  });

  it('names itself and its own ranks in errors', async () => {
    const groups = loopbackGroups(4, { name: 'world' });
    const [, left, , right] = await all(groups, (group) => group.split(group.rank % 2));
    const refused = 'rank 1 called barrier but rank 0 called allReduce sum 1 × float32 (group "world[1,3]"';
    await Promise.all([
      expect(left!.allReduce(new Float32Array(1))).rejects.toThrow(`${refused}, rank 0 of 2, seq 0)`),
      expect(right!.barrier()).rejects.toThrow(`${refused}, rank 1 of 2, seq 0)`),
    ]);
    await all(groups, (group) => group.barrier());
  });

  it('has its own deadline if it is given one', async () => {
    const groups = loopbackGroups(2, { timeoutMs: 60_000 });
    const [short] = await all(groups, (group) => group.subgroup([0, 1], { timeoutMs: 20, name: 'short' }));
    expect([short!.timeoutMs, short!.name]).toEqual([20, 'short']);
    await expect(short!.barrier()).rejects.toThrow(
      'barrier: no answer from rank 1 within 20 ms (group "short"',
    );
  });

  it('is closed with its parent, and aborted with it', async () => {
    const groups = loopbackGroups(2);
    const children = await all(groups, (group) => group.split(0));
    const grandchildren = await all(children as Group[], (group) => group.split(0));
    const pending = grandchildren[1]!.barrier();
    groups[0]!.abort(new Error('enough'));
    await expect(pending).rejects.toThrow('rank 0 aborted the group: enough');
    expect([children[0]!.failure?.code, children[1]!.failure]).toEqual(['ERR_COLL_ABORTED', null]);
    await all(groups, (group) => group.close());
    expect([...children, ...grandchildren].map((group) => group!.isClosed)).toEqual([true, true, true, true]);
  });

  it('may be closed alone, and made again', async () => {
    const groups = loopbackGroups(2);
    for (let round = 0; round < 3; round++) {
      const children = await all(groups, (group) => group.split(0));
      const x = [Float32Array.of(1), Float32Array.of(2)];
      await all(children as Group[], (group) => group.allReduce(x[group.rank]!));
      expect(x).toEqual([Float32Array.of(3), Float32Array.of(3)]);
      await all(children as Group[], (group) => group.close());
    }
  });

  it('is no group before the promise of its call was awaited', async () => {
    const [group] = loopbackGroups(1) as [Group];
    const pending = [group.split(0), group.subgroup([0]), group.shrink()] as const;
    const asGroups = pending as unknown as readonly Group[];
    expect(() => asGroups[0]!.allReduce(new Float32Array(1))).toThrow(
      'subgroup.allReduce: group.split() gives a promise, which was not awaited; ' +
        'expected const subgroup = await group.split().',
    );
    expect(() => asGroups[1]!.rank).toThrow('expected const subgroup = await group.subgroup().');
    expect(() => asGroups[2]!.size).toThrow('expected const smaller = await group.shrink().');
    const ends = await Promise.allSettled(pending);
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    await group.close();
  });

  it('is refused for wrong arguments without harm', async () => {
    const groups = loopbackGroups(2);
    await expect(groups[0]!.split(0.5)).rejects.toThrow('split: color is not usable');
    await expect(groups[0]!.split(0, Number.NaN)).rejects.toThrow('split: key is not usable');
    for (const ranks of [[], [0, 0], [2], [-1], [0.5]])
      await expect(groups[0]!.subgroup(ranks)).rejects.toThrow('subgroup: the list of ranks is not usable');
    const children = await all(groups, (group) => group.split(0));
    expect(children.map((group) => group!.size)).toEqual([2, 2]);
  });

  it('needs a group that can make backends', async () => {
    const group = new Group(solo(), { name: 'solo', timeoutMs: 1_000 });
    await expect(group.split(0)).rejects.toThrow('split: this group cannot have subgroups');
  });
});

describe('subgroups of init()', () => {
  const open: Group[] = [];
  afterEach(() => all(open.splice(0), (group) => group.close()));

  it('are connected through the store of their parent, on the same backend', async () => {
    const store = new MemoryStore();
    open.push(
      ...(await Promise.all([0, 1, 2].map((rank) => init({ rank, size: 3, store, backend: 'host' })))),
    );
    const children = await all(open, (group) => group.split(group.rank === 1 ? null : 4, -group.rank));
    expect(children.map((group) => group?.rank)).toEqual([1, undefined, 0]);
    const members = [children[0]!, children[2]!];
    expect(members.map(({ backend, ranks, name }) => [backend, ranks, name])).toEqual([
      ['host', [2, 0], 'world[2,0]'],
      ['host', [2, 0], 'world[2,0]'],
    ]);
    const alone = await all(members, (group) => group.split(group.rank));
    const x = [Float32Array.of(1), Float32Array.of(2)];
    await all(members, (group) => group.allReduce(x[group.rank]!));
    await all(alone as Group[], (group) => group.barrier());
    expect([alone.map((group) => group!.size), x]).toEqual([
      [1, 1],
      [Float32Array.of(3), Float32Array.of(3)],
    ]);
  });
});
