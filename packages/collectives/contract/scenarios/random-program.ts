// Generates random programs as plain data, the same on all ranks for the same seed and size. run-program.ts
// runs them. Their results must be bitwise equal on every backend.

import { type DType, dtypes } from '../../src/dtype.ts';
import type { ReduceOp } from '../../src/reduce-ops.ts';
import { isReducible, reduceOps } from '../../src/reduce-ops.ts';

const collectives = [
  'allReduce',
  'reduce',
  'broadcast',
  'allGather',
  'gather',
  'scatter',
  'reduceScatter',
  'allToAll',
  'barrier',
  'monitoredBarrier',
  'broadcastObject',
  'allGatherObject',
  'gatherObject',
  'scatterObject',
] as const;

interface Common {
  /** Index of the group in membersOf(). */
  readonly group: number;
  /** How the caller waits: with the Sync form, by awaiting at once, or by awaiting at a later step. */
  readonly when: 'sync' | 'await' | 'later';
}
export interface CollectiveStep extends Common {
  readonly verb: (typeof collectives)[number];
  readonly dtype: DType;
  readonly op: ReduceOp;
  readonly root: number;
  /** Parts of equal length, parts of different lengths, a list of parts, or many buffers in one call. */
  readonly shape: 'even' | 'counts' | 'list' | 'many';
  /** Elements by rank; for 'even' only the first entry is used; for 'many' by buffer. */
  readonly counts: readonly number[];
}
export interface MessageStep extends Common {
  readonly verb: 'messages';
  readonly dtype: DType;
  readonly count: number;
  readonly tag: number;
  /** Sender and receiver of each message. If `isFromAny`, receivers use anySource. */
  readonly pairs: readonly (readonly [number, number])[];
  readonly isFromAny: boolean;
}
export type Step = CollectiveStep | MessageStep;

/** Returns the groups of a program, as lists of ranks of the outermost group. */
export function membersOf(size: number): readonly (readonly number[])[] {
  const all = Array.from({ length: size }, (_, rank) => rank);
  const reversed = [...all].reverse();
  const halves = [0, 1].map((half) => all.filter((rank) => rank % 2 === half));
  return [all, reversed, reversed.slice(0, -1), ...halves].filter((members) => members.length > 0);
}

/** Returns a random whole number from 0 to n - 1. */
type Random = (n: number) => number;

export function randomProgram(seed: number, size: number): Step[] {
  const random = randomNumbers(seed);
  const groups = membersOf(size);
  return Array.from({ length: 4 + random(8) }, (_, index) => {
    // Most steps run in the group of all ranks.
    const group = random(3) === 0 ? random(groups.length) : 0;
    const members = (groups[group] as readonly number[]).length;
    const when = (['sync', 'await', 'later', 'later'] as const)[random(4)]!;
    const common = { group, when };
    if (members > 1 && random(4) === 0) return messages(random, members, index, common);
    return collective(random, members, common);
  });
}

function collective(random: Random, size: number, common: Common): CollectiveStep {
  const verb = collectives[random(collectives.length)]!;
  const dtype = dtypes[random(dtypes.length)]!;
  const ops = reduceOps.filter((op) => isReducible(op, dtype));
  const shape = (['even', 'even', 'counts', 'list', 'many'] as const)[random(5)]!;
  const length = shape === 'many' ? random(5) : size;
  return {
    ...common,
    verb,
    dtype,
    op: ops[random(ops.length)]!,
    root: random(size),
    shape,
    counts: Array.from({ length }, () => count(random)),
  };
}

function messages(random: Random, size: number, index: number, common: Common): MessageStep {
  const isFromAny = random(4) === 0;
  const isSync = common.when === 'sync';
  const receiver = random(size);
  const pairs = Array.from({ length: isSync ? 1 : 1 + random(2 * size) }, () => {
    const to = isFromAny ? receiver : random(size);
    return [(to + 1 + random(size - 1)) % size, to] as const;
  });
  const dtype = dtypes[random(dtypes.length)]!;
  // No other message may match a receive from any rank.
  const tag = isFromAny ? 100 + index : random(3);
  return { ...common, verb: 'messages', dtype, count: count(random), tag, pairs, isFromAny };
}

/** Returns a random count: mostly small, often odd, sometimes 0, rarely large. */
function count(random: Random): number {
  const limit = [1, 9, 9, 9, 9, 300, 300, 300, 300, 5_000][random(10)]!;
  return limit === 5_000 && random(4) === 0 ? random(50_000) : random(limit);
}

/** Returns a repeatable generator (mulberry32). */
export function randomNumbers(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1);
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}
