// Several ranks in one process, each an async function over its own loopback group.
import { type Group, loopbackGroups } from '@ringwise/collectives';

/** Runs `body` as every rank and returns what became of each. Groups are closed. */
export async function onRanks<T>(
  size: number,
  body: (group: Group) => Promise<T>,
  groups: readonly Group[] = loopbackGroups(size, { timeoutMs: 5000 }),
): Promise<PromiseSettledResult<T>[]> {
  const outcomes = await Promise.allSettled(groups.map((group) => body(group)));
  await Promise.all(groups.map((group) => group.close()));
  return outcomes;
}

/** The values of ranks that all succeeded; throws the first error. */
export function values<T>(outcomes: readonly PromiseSettledResult<T>[]): T[] {
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}

/** The errors of ranks that all failed. */
export function reasons(outcomes: readonly PromiseSettledResult<unknown>[]): (Error & { code?: string })[] {
  return outcomes.map((outcome) => {
    if (outcome.status === 'fulfilled') throw new Error('expected this rank to fail');
    return outcome.reason;
  });
}

export function largestDifference(a: Iterable<number>, b: Iterable<number>): number {
  const other = [...b];
  return [...a].reduce((largest, value, i) => Math.max(largest, Math.abs(value - other[i]!)), 0);
}
