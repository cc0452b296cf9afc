// The functions that the ranks of subgroup-faults.test.ts run, each in a process of its own.
import { setTimeout as sleep } from 'node:timers/promises';
import { CollectiveError, type Group, init } from '../../src/index.ts';

/** What a rank does in place of the second half of split(), in which the members meet. */
export type Fault = 'ends' | 'aborts the group' | 'ends after rank 1';

export interface Outcome {
  /** The error of split(); null if it made a group. */
  readonly error: {
    readonly code: string;
    readonly peers: readonly number[];
    readonly message: string;
  } | null;
  /** Code of the group's failure after that. */
  readonly failure: string | null;
  /** Ranks of the group that shrink() makes then; null without it. */
  readonly left: readonly number[] | null;
}

/**
 * Splits the group by `colors`. The highest rank takes part in
 * the first half only, in which the members are found, and returns null if it survives.
 */
export async function splitWithFault(
  rank: number,
  colors: readonly number[],
  fault: Fault,
  timeoutMs: number,
): Promise<Outcome | null> {
  const group = await init({ timeoutMs });
  if (rank === 1 && fault === 'ends after rank 1') await endWhenTold(group, colors[rank]!);
  if (rank === group.size - 1) {
    await takeHalf(group, colors[rank]!, fault);
    await group.close();
    return null;
  }
  let error: Outcome['error'] = null;
  try {
    const made = group.split(colors[rank]!);
    await group.barrier();
    await group.send(Uint8Array.of(1), group.size - 1);
    await made;
  } catch (caught) {
    if (!CollectiveError.is(caught)) throw caught;
    error = { code: caught.code, peers: caught.peers, message: caught.message };
  }
  const failure = group.failure?.code ?? null;
  const left = failure === 'ERR_COLL_PEER_LOST' ? (await group.shrink()).ranks : null;
  await group.close();
  return { error, failure, left };
}

async function takeHalf(group: Group, color: number, fault: Fault): Promise<void> {
  const pids = await findMembers(group, color);
  for (let rank = 0; rank < group.size - 1; rank++) await group.recv(new Uint8Array(1), rank);
  if (fault === 'ends after rank 1') {
    await group.send(Uint8Array.of(1), 1);
    while (isAlive(pids[1]!)) await sleep(10);
  }
  if (fault !== 'aborts the group') process.kill(process.pid, 'SIGKILL');
  group.abort('it has found bad data');
}

/** Takes part in the first half of split(), and ends when the highest rank says so. */
async function endWhenTold(group: Group, color: number): Promise<never> {
  await findMembers(group, color);
  await group.send(Uint8Array.of(1), group.size - 1);
  await group.recv(new Uint8Array(1), group.size - 1);
  process.kill(process.pid, 'SIGKILL');
  return await new Promise(() => {});
}

/** Makes the calls of the first half of split(). Resolves with the process ids of those that make them here. */
async function findMembers(group: Group, color: number): Promise<(number | undefined)[]> {
  const entry = { call: 'split', color, key: 0, pid: process.pid };
  const entries = await group.allGatherObject<Partial<typeof entry>>(entry);
  await group.barrier();
  return entries.map(({ pid }) => pid);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Closes the group while split() is pending. Returns whether the new group is closed then, and the group's failure. */
export async function closeWhileSplitting(
  rank: number,
): Promise<readonly [boolean | undefined, string | null]> {
  const group = await init();
  const made = group.split(rank % 2);
  await group.close();
  return [(await made)?.isClosed, group.failure?.code ?? null];
}
