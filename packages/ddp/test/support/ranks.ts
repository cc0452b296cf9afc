// Runs several ranks in one process, each as an async function with its own loopback group.
import { type Group, loopbackGroups } from '@ringwise/collectives';

/** Runs `body` as every rank and returns the outcome of each. Closes the groups. */
export async function onRanks<T>(
  size: number,
  body: (group: Group) => Promise<T>,
  groups: readonly Group[] = loopbackGroups(size, { timeoutMs: 60_000 }),
): Promise<PromiseSettledResult<T>[]> {
  const outcomes = await Promise.allSettled(groups.map((group) => body(group)));
  await Promise.all(groups.map((group) => group.close()));
  return outcomes;
}

/** Returns the values of ranks that all succeeded. Throws the first error. */
export function values<T>(outcomes: readonly PromiseSettledResult<T>[]): T[] {
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}

/** Returns the errors of ranks that all failed. */
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
