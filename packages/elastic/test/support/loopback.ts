// Runs several ranks in one process, each as an async function with its own loopback group.
import { type Group, loopbackGroups } from '@ringwise/collectives';

/** Runs `body` as every rank and returns the outcome of each. Closes the groups. */
export async function outcomes<T>(
  groups: readonly Group[],
  body: (group: Group) => Promise<T>,
): Promise<PromiseSettledResult<T>[]> {
  const ends = await Promise.allSettled(groups.map((group) => body(group)));
  await Promise.all(groups.map((group) => group.close()));
  return ends;
}

/** Runs `body` as every rank. Returns their values, or throws the first error. */
export async function values<T>(groups: readonly Group[], body: (group: Group) => Promise<T>): Promise<T[]> {
  return (await outcomes(groups, body)).map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

/** Runs `body` as each of `size` ranks. Returns their values, or throws the first error. */
export async function onRanks<T>(size: number, body: (group: Group) => Promise<T>): Promise<T[]> {
  return await values(loopbackGroups(size, { timeoutMs: 60_000 }), body);
}

/** Runs `body` as each of `size` ranks, all of which must fail. Returns their errors. */
export async function errorsOf(
  size: number,
  body: (group: Group) => Promise<unknown>,
): Promise<(Error & { code?: string })[]> {
  const ends = await outcomes(loopbackGroups(size, { timeoutMs: 60_000 }), body);
  return ends.map((end) => {
    if (end.status === 'fulfilled') throw new Error('expected this rank to fail');
    return end.reason;
  });
}
