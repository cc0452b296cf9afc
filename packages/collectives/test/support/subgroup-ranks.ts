// The functions that the ranks of subgroup-faults.test.ts run, each in a process of its own.
import { CollectiveError, type Group, init } from '../../src/index.ts';

/** What a rank does in place of the second half of split(), in which the members meet. */
export type Fault = 'ends' | 'aborts the group';

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
  await group.allGatherObject({ call: 'split', color, key: 0 });
  await group.barrier();
  for (let rank = 0; rank < group.size - 1; rank++) await group.recv(new Uint8Array(1), rank);
  if (fault === 'ends') process.kill(process.pid, 'SIGKILL');
  group.abort('it has found bad data');
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
