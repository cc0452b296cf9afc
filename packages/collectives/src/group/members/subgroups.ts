// Finds the members of a new group, for split() by color and key, for subgroup() from a list of ranks.
import { badColor, badKey, badMembers, mismatch } from '../../errors.ts';
import { shown } from '../../options/errors.ts';
import { allGatherObject } from '../../verbs/objects.ts';
import type { Admission } from '../admission.ts';
import { mapSteps, type Steps } from '../steps.ts';

/** One rank's contribution. `call` must be the same on all ranks. */
interface Entry {
  readonly call: string;
  readonly color: number | null;
  readonly key: number;
}

/**
 * Returns the steps that find the members of this rank's new group, in the order of their new ranks; null if
 * it is in none. Collective.
 */
export function membersByColor(group: Admission, color: number | null, key: number): Steps<number[] | null> {
  if (color !== null && !Number.isSafeInteger(color)) throw group.error(badColor(shown(color)));
  if (!Number.isFinite(key)) throw group.error(badKey(shown(key)));
  return members(group, { call: 'split', color, key });
}

/** Like membersByColor(), but from a list of ranks that is the same on all ranks. */
export function membersByList(group: Admission, ranks: readonly number[]): Steps<number[] | null> {
  const isRank = (rank: number) => Number.isInteger(rank) && rank >= 0 && rank < group.size;
  const isList = Array.isArray(ranks) && ranks.length > 0 && ranks.every(isRank);
  if (!isList || new Set(ranks).size < ranks.length) throw group.error(badMembers(group.size, shown(ranks)));
  const key = ranks.indexOf(group.rank);
  return members(group, { call: `subgroup [${ranks.join(', ')}]`, color: key < 0 ? null : 0, key });
}

function members(group: Admission, mine: Entry): Steps<number[] | null> {
  const { seq } = group;
  return mapSteps(allGatherObject(group, mine, {}), (entries) => {
    const sideOf = (rank: number) => ({ rank, signature: (entries[rank] as Entry).call });
    const other = entries.findIndex(({ call }) => call !== entries[0]?.call);
    if (other >= 0) throw group.error(mismatch(mine.call.split(' ')[0]!, seq, sideOf(0), sideOf(other)));
    if (mine.color === null) return null;
    const sameColor = entries.flatMap(({ color }, rank) => (color === mine.color ? [rank] : []));
    return sameColor.sort((a, b) => entries[a]!.key - entries[b]!.key || a - b);
  });
}

/** Returns the parent's name with the members' ranks in it, such as "world[0,2-5]". */
export function nameOf(parent: string, members: readonly number[]): string {
  const parts: string[] = [];
  for (let from = 0; from < members.length; ) {
    let to = from;
    while (members[to + 1] === members[to]! + 1) to++;
    parts.push(to === from ? `${members[from]}` : `${members[from]}-${members[to]}`);
    from = to + 1;
  }
  return `${parent}[${parts.join(',')}]`;
}
