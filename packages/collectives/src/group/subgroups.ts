import { badColor, badKey, badMembers, mismatch } from '../errors.ts';
import { shown } from '../options/errors.ts';
import { allGatherObject } from '../verbs/objects.ts';
import type { Calls } from './calls.ts';
import { mapSteps, type Steps } from './steps.ts';

/** What a rank tells the others; `call` must be the same on all ranks. */
interface Entry {
  readonly call: string;
  readonly color: number | null;
  readonly key: number;
}

/** The members of the group that this rank is in, in the order of their new ranks; null if it is in none. */
export function membersByColor(calls: Calls, color: number | null, key: number): Steps<number[] | null> {
  if (color !== null && !Number.isSafeInteger(color)) throw calls.error(badColor(shown(color)));
  if (!Number.isFinite(key)) throw calls.error(badKey(shown(key)));
  return members(calls, { call: 'split', color, key });
}

/** Like membersByColor, from a list that all ranks know. */
export function membersByList(calls: Calls, ranks: readonly number[]): Steps<number[] | null> {
  const isRank = (rank: number) => Number.isInteger(rank) && rank >= 0 && rank < calls.size;
  const isList = Array.isArray(ranks) && ranks.length > 0 && ranks.every(isRank);
  if (!isList || new Set(ranks).size < ranks.length) throw calls.error(badMembers(calls.size, shown(ranks)));
  const key = ranks.indexOf(calls.rank);
  return members(calls, { call: `subgroup [${ranks.join(', ')}]`, color: key < 0 ? null : 0, key });
}

function members(calls: Calls, mine: Entry): Steps<number[] | null> {
  const { seq } = calls;
  return mapSteps(allGatherObject(calls, mine, {}), (entries) => {
    const sideOf = (rank: number) => ({ rank, signature: (entries[rank] as Entry).call });
    const other = entries.findIndex(({ call }) => call !== entries[0]?.call);
    if (other >= 0) throw calls.error(mismatch(mine.call.split(' ')[0]!, seq, sideOf(0), sideOf(other)));
    if (mine.color === null) return null;
    const sameColor = entries.flatMap(({ color }, rank) => (color === mine.color ? [rank] : []));
    return sameColor.sort((a, b) => entries[a]!.key - entries[b]!.key || a - b);
  });
}

/** "world[0,2-5]": the parent's name and the ranks there. */
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
