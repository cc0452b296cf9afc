// Scenarios with subgroups.
import type { Group } from '../../src/group/group.ts';
import { errorOf, type PlainError } from '../outcome.ts';
import { expect, newReport, type Report } from '../report.ts';

async function sumOf(group: Group, value: number): Promise<number> {
  const x = Float64Array.of(value);
  await group.allReduce(x);
  return x[0] as number;
}

/** Makes subgroups by color and by list, next to each other and nested, while the parent is in use. */
export async function splitGroups(group: Group): Promise<Report> {
  const report = newReport();
  const { rank, size, name } = group;
  const ranks = Array.from({ length: size }, (_, other) => other);
  const same = ranks.filter((other) => other % 2 === rank % 2);

  const half = (await group.split(rank % 2)) as Group;
  expect(report, half.ranks.join() === same.join(), `split gave the ranks ${half.ranks}`);
  expect(
    report,
    half.rank === same.indexOf(rank) && half.size === same.length,
    'split gave another rank or size',
  );
  const sum = same.reduce((total, other) => total + other, 0);
  const [inHalf, inAll] = await Promise.all([sumOf(half, rank), sumOf(group, 1)]);
  expect(report, inHalf === sum && inAll === size, `the sums are ${inHalf} and ${inAll}`);

  const reversed = (await group.split(7, -rank, { name: 'reversed' })) as Group;
  expect(
    report,
    reversed.rank === size - 1 - rank && reversed.name === 'reversed',
    'split did not order by key',
  );
  const none = await group.split(rank === 0 ? null : 0);
  expect(report, (none === null) === (rank === 0), 'a rank without a color got a group, or one with it none');

  const list = ranks.slice(1).reverse();
  const part = list.length > 0 ? await group.subgroup(list) : null;
  expect(
    report,
    (part === null) === (rank === 0),
    'subgroup gave a group to a rank that is no member, or none to a member',
  );
  if (part !== null) {
    expect(report, part.rank === list.indexOf(rank), `subgroup gave rank ${part.rank}`);
    const inner = (await part.split(0, part.rank)) as Group;
    const alone = (await inner.subgroup([inner.size - 1])) as Group | null;
    expect(report, inner.ranks.join() === list.join(), `ranks of the group in a group are ${inner.ranks}`);
    expect(report, (await sumOf(inner, 1)) === list.length, 'the group in a group has a wrong sum');
    if (alone !== null) {
      expect(
        report,
        alone.ranks.join() === '1' && alone.size === 1,
        `the innermost group has ranks ${alone.ranks}`,
      );
      expect(report, (await sumOf(alone, 5)) === 5, 'the innermost group has a wrong sum');
      expect(report, alone.name.startsWith(`${name}[`), `the innermost group is called ${alone.name}`);
    }
    await part.close();
    expect(report, inner.isClosed, 'closing a group did not close the group in it');
  }
  await half.barrier();
  await group.barrier();
  return report;
}

export interface SubgroupFailure {
  readonly inSubgroup: PlainError | null;
  readonly name: string;
  /** Error of a later call on the parent; null if it succeeded. */
  readonly inParent: PlainError | null;
}

/** Makes rank 0 of a subgroup, the last rank of its parent, call something else. The parent must still work. */
export async function subgroupFails(group: Group): Promise<SubgroupFailure> {
  const part = (await group.split(0, -group.rank)) as Group;
  const inSubgroup = await errorOf(() =>
    part.rank === 0 ? part.barrier() : part.allReduce(new Float32Array(2)),
  );
  const inParent = await errorOf(() => group.barrier());
  return { inSubgroup, name: part.name, inParent };
}

/** Makes the last rank name other members than the other ranks. */
export async function subgroupMismatch(group: Group): Promise<PlainError | null> {
  const others = group.rank === group.size - 1 ? [0] : [1, 0];
  return await errorOf(() => group.subgroup(others));
}
