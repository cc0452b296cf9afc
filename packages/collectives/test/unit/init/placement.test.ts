import { describe, expect, it } from 'vitest';
import { loopbackGroups } from '../../../src/index.ts';
import { hostsOfMembers, placementOf } from '../../../src/init/placement.ts';

/** Parses host descriptions: "a0" is host a with local rank 0, "a-" has no local rank, "a0:3" sees device 3. */
const hostInfos = (text: string) =>
  text.split(' ').map((word) => {
    const [, host, local, , devices = ''] = /^(\w)(\d|-)(:(.*))?$/.exec(word)!;
    return { host: host!, localRank: local === '-' ? null : Number(local), devices };
  });
const localRanks = (text: string) => hostInfos(text).map((_, rank, all) => placementOf(rank, all).localRank);

describe('the place of a rank', () => {
  it.each([
    ['that no launcher tells is counted', 'a- a- b- b-', [0, 1, 0, 1]],
    ['is counted where hosts take turns', 'a- b- a- b-', [0, 0, 1, 1]],
    ['is what the launcher says', 'a1 a0 b0 b1', [1, 0, 0, 1]],
    ['is counted where only some are told', 'a1 a- b0', [0, 1, 0]],
    ['is counted where two launchers on a host begin at 0', 'a0 a1 a0 a1', [0, 1, 2, 3]],
    ['is what each of two launchers says of devices of its own', 'a0:0,1 a1:0,1 a0:2,3 a1:2,3', [0, 1, 0, 1]],
    ['is 0 where each rank sees one device of its own', 'a0:0 a0:1 a0:2', [0, 0, 0]],
    ['is counted where the launcher means another host', 'a0 a1 b2 b3', [0, 1, 0, 1]],
    ['is counted where LOCAL_RANK is a leftover', 'a7 a7', [0, 1]],
  ])('%s (%s)', (_, text, expected) => {
    expect(localRanks(text)).toEqual(expected);
  });

  it('comes with the ranks of every host, in order', () => {
    expect(placementOf(3, hostInfos('b- a- b- b-'))).toEqual({
      localRank: 2,
      localSize: 3,
      hosts: [[0, 2, 3], [1]],
    });
  });

  it('keeps the hosts of the ranks of a subgroup', () => {
    const hosts = [
      [0, 1, 4],
      [2, 3],
    ];
    expect(hostsOfMembers(hosts, [3, 4, 2, 0])).toEqual([
      [0, 2],
      [1, 3],
    ]);
    expect(hostsOfMembers([], [1])).toEqual([]);
  });

  it('of loopback groups is one host; subgroups keep the place of the process', async () => {
    const groups = loopbackGroups(3);
    const pairs = await Promise.all(groups.map((group) => group.subgroup([2, 1])));
    const placed = [...groups, ...pairs].map(
      (group) => group && [group.localRank, group.localSize, group.hosts],
    );
    expect(placed).toEqual([
      [0, 3, [[0, 1, 2]]],
      [1, 3, [[0, 1, 2]]],
      [2, 3, [[0, 1, 2]]],
      null,
      [1, 3, [[0, 1]]],
      [2, 3, [[0, 1]]],
    ]);
  });
});
