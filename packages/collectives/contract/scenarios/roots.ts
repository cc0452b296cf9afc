// Scenarios in which ranks name different roots. A rank that only sends may end before it can detect that.
import type { Group } from '../../src/group/group.ts';
import { invoke, type Mode } from '../invoke.ts';
import { errorOf, type PlainError } from '../outcome.ts';

export const rootedCalls = [
  'broadcast',
  'reduce',
  'gather',
  'scatter',
  'broadcast of a list',
  'broadcastObject',
  'gatherObject',
  'scatterObject',
] as const;
export type RootedCall = (typeof rootedCalls)[number];

/**
 * The root that a rank names: itself, the next rank, or rank 0 (except the last rank, which names itself).
 */
export type RootChoice = 'self' | 'next' | 'odd';

/** The call that follows a call with different roots. */
export type Follower = 'close' | 'barrier' | 'the same call' | 'message';

export interface RootsDiffer {
  /**
   * Errors of the earlier calls, of the call itself, of the one after it (left out if that is close()), and of
   * close(), in this order; null for none.
   */
  readonly errors: readonly (PlainError | null)[];
  /** Whether this rank's memory is unchanged where only other ranks' data could have changed it. */
  readonly isUntouched: boolean;
}

/**
 * Runs in a group of its own, because its close() may fail. First makes `warmUp` calls with the same root on
 * all ranks.
 */
export async function rootsDiffer(
  parent: Group,
  mode: Mode,
  call: RootedCall,
  bytes: number,
  choice: RootChoice,
  follower: Follower,
  warmUp: number,
): Promise<RootsDiffer> {
  const group = (await parent.subgroup(parent.ranks.map((_, rank) => rank)))!;
  const { rank, size } = group;
  const odd = rank === size - 1 ? rank : 0;
  const root = { self: rank, next: (rank + 1) % size, odd }[choice];
  const buffer = new Float32Array(bytes / 4).fill(rank + 1);
  const agree = async () => {
    for (let i = 0; i < warmUp; i++) await rooted(group, mode, call, 0, new Float32Array(1));
  };
  // A slow rank may learn of the mismatch before it gets here.
  const errors = [await errorOf(agree)];
  errors.push(await errorOf(() => rooted(group, mode, call, root, buffer)));
  if (follower !== 'close') errors.push(await errorOf(() => follow(group, mode, call, follower)));
  const isUntouched = buffer.every((x) => x === rank + 1);
  errors.push(await errorOf(() => group.close()));
  return { errors, isUntouched };
}

function rooted(
  group: Group,
  mode: Mode,
  call: RootedCall,
  root: number,
  buffer: Float32Array,
): Promise<unknown> {
  const { rank, size } = group;
  const whole = rank === root ? new Float32Array(buffer.length * size) : null;
  switch (call) {
    case 'broadcast':
      return invoke(group, mode, 'broadcast', buffer, { root });
    case 'broadcast of a list':
      return invoke(group, mode, 'broadcast', [buffer, new Int32Array(3), buffer.slice()], { root });
    case 'reduce':
      return invoke(group, mode, 'reduce', buffer, { root });
    case 'gather':
      return invoke(group, mode, 'gather', buffer, whole, { root });
    case 'scatter':
      return invoke(group, mode, 'scatter', whole, buffer, { root });
    case 'broadcastObject':
      return invoke(group, mode, 'broadcastObject', buffer, { root });
    case 'gatherObject':
      return invoke(group, mode, 'gatherObject', buffer, { root });
    case 'scatterObject':
      return invoke(group, mode, 'scatterObject', new Array(size).fill(buffer), { root });
  }
}

/** Makes the next call, in which all ranks agree. */
function follow(group: Group, mode: Mode, call: RootedCall, follower: Follower): Promise<unknown> {
  const { rank, size } = group;
  switch (follower) {
    case 'barrier':
      return invoke(group, mode, 'barrier');
    case 'message': {
      const [send, recv] = [Float32Array.of(rank), new Float32Array(1)];
      const [to, from] = [(rank + 1) % size, (rank + size - 1) % size];
      return invoke(group, mode, 'batch', [
        { send, to },
        { recv, from },
      ]);
    }
    default:
      return rooted(group, mode, call, 0, new Float32Array(1));
  }
}
