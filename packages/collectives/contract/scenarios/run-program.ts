// Runs random programs (random-program.ts) on one rank and returns digests of its memory.
import { createHash, type Hash } from 'node:crypto';
import type { DType } from '../../src/dtype.ts';
import { type ArrayOf, allocHost, type BufferLike, elementsOf, isPlain } from '../../src/group/buffer.ts';
import type { Group } from '../../src/group/group.ts';
import { anySource, type ReduceOptions } from '../../src/options/options.ts';
import type { ReduceOp } from '../../src/reduce-ops.ts';
import { encode, factorOf } from '../inputs.ts';
import { invoke, type Mode } from '../invoke.ts';
import {
  type CollectiveStep,
  type MessageStep,
  membersOf,
  randomNumbers,
  randomProgram,
} from './random-program.ts';

/** Result of one step. The buffers are read when all steps have ended. */
interface Started {
  readonly work: PromiseLike<unknown>;
  readonly buffers: readonly Memory[];
  /** Whether the step must end before a Sync call in another group. */
  readonly isObject: boolean;
}
interface Memory {
  readonly like: BufferLike;
  readonly elements: ArrayOf<DType>;
}

/**
 * Runs the programs with the seeds from `first` on. Returns a text for each: eight hexadecimal digits for
 * each step, or dashes if this rank is not in the step's group. A rank's texts are the same on all backends.
 */
export async function randomPrograms(group: Group, first: number, programs: number): Promise<string[]> {
  const groups = await makeGroups(group);
  const texts: string[] = [];
  for (let seed = first; seed < first + programs; seed++) {
    try {
      texts.push(await runProgram(groups, group, seed));
    } catch (cause) {
      throw new Error(`seed ${seed} on rank ${group.rank} of ${group.size}: ${(cause as Error).message}`, {
        cause,
      });
    }
  }
  return texts;
}

/** Returns the program's groups by index in membersOf(); null for groups that this rank is not in. */
async function makeGroups(group: Group): Promise<(Group | null)[]> {
  const reversed = (await group.split(0, -group.rank)) as Group;
  const [, , inner] = membersOf(group.size);
  const nested = group.size > 1 ? await reversed.subgroup(inner!.map((_, rank) => rank)) : null;
  const half = await group.split(group.rank % 2);
  return membersOf(group.size).map((members) => {
    const candidates = [group, reversed, nested, half];
    return candidates.find((candidate) => candidate?.ranks.join() === members.join()) ?? null;
  });
}

async function runProgram(groups: readonly (Group | null)[], world: Group, seed: number): Promise<string> {
  const started: (Started | null)[] = [];
  let pending: Started[] = [];
  const settle = async (which: (one: Started) => boolean) => {
    const now = pending.filter(which);
    pending = pending.filter((one) => !now.includes(one));
    for (const { work } of now) await work;
  };
  for (const [index, step] of randomProgram(seed, world.size).entries()) {
    const group = groups[step.group] ?? null;
    if (group === null) {
      started.push(null);
      continue;
    }
    const mode = step.when === 'sync' && group.supports.sync ? 'sync' : 'async';
    // A blocked thread cannot start the second step of an object form, which other ranks may wait for.
    if (step.when === 'sync') await settle(({ isObject }) => isObject);
    const data = randomNumbers(1000 * seed + 10 * index + world.rank);
    const one =
      step.verb === 'messages' ? message(step, group, mode, data) : collective(step, group, mode, data);
    // The first failure is reported; the others are its consequences.
    void one.work.then(undefined, () => {});
    started.push(one);
    pending.push(one);
    if (step.when !== 'later') await settle((other) => other === one);
  }
  await settle(() => true);
  const digests = started.map(async (one) =>
    one === null ? '--------' : digestOf(await one.work, one.buffers),
  );
  return (await Promise.all(digests)).join(' ');
}

function collective(step: CollectiveStep, group: Group, mode: Mode, data: (n: number) => number): Started {
  const { verb, dtype, root, shape, counts } = step;
  const { rank, size } = group;
  const op = verb === 'allReduce' || verb === 'reduce' || verb === 'reduceScatter' ? step.op : null;
  const used: Memory[] = [];
  const make = (count: number): Memory => {
    const memory = filled(dtype, count, op, data);
    used.push(memory);
    return memory;
  };
  const like = (count: number) => make(count).like;
  const likes = (lengths: readonly number[]) => lengths.map(like);
  const options: ReduceOptions = {
    ...(op !== null && { op }),
    ...(op === 'premulSum' && { factor: factorOf(rank) }),
  };
  const started = (work: PromiseLike<unknown>): Started => {
    const isObject = verb.endsWith('Object');
    return { work, buffers: used, isObject };
  };

  const [first = 0] = counts;
  const isMany = shape === 'many';
  /** Returns the buffer of an operation in place, or this rank's part. */
  const one = () => (isMany ? likes(counts) : like(first));
  const isUneven = shape === 'counts' || shape === 'list';
  const part = () => (isMany ? likes(counts) : like((isUneven ? counts[rank] : first) as number));
  const whole = () => {
    if (isMany) return likes(counts.map((count) => count * size));
    if (shape === 'list') return likes(counts);
    return like(shape === 'counts' ? sum(counts) : first * size);
  };
  const parts = isUneven ? { counts } : {};
  switch (verb) {
    case 'allReduce':
      return started(invoke(group, mode, verb, one(), options));
    case 'reduce':
      return started(invoke(group, mode, verb, one(), { ...options, root }));
    case 'broadcast':
      return started(invoke(group, mode, verb, one(), { root }));
    case 'allGather':
      return started(invoke(group, mode, verb, part(), whole(), parts));
    case 'gather':
      return started(invoke(group, mode, verb, part(), rank === root ? whole() : null, { ...parts, root }));
    case 'scatter':
      return started(invoke(group, mode, verb, rank === root ? whole() : null, part(), { ...parts, root }));
    case 'reduceScatter':
      return started(invoke(group, mode, verb, whole(), part(), { ...parts, ...options }));
    case 'allToAll': {
      if (!isUneven) return started(invoke(group, mode, verb, like(first * size), like(first * size)));
      // Lengths depend on both the sender and the receiver.
      const between = (from: number, to: number) => ((counts[from] as number) * (to + 1)) % 700;
      const sendCounts = counts.map((_, to) => between(rank, to));
      const recvCounts = counts.map((_, from) => between(from, rank));
      if (shape === 'list') return started(invoke(group, mode, verb, likes(sendCounts), likes(recvCounts)));
      const [input, output] = [like(sum(sendCounts)), like(sum(recvCounts))];
      return started(invoke(group, mode, verb, input, output, { sendCounts, recvCounts }));
    }
    case 'barrier':
    case 'monitoredBarrier':
      return started(invoke(group, mode, verb));
    case 'broadcastObject':
      return started(invoke(group, mode, verb, objectOf(data), { root }));
    case 'allGatherObject':
      return started(invoke(group, mode, verb, objectOf(data)));
    case 'gatherObject':
      return started(invoke(group, mode, verb, objectOf(data), { root }));
    case 'scatterObject':
      return started(
        invoke(
          group,
          mode,
          verb,
          Array.from({ length: size }, () => objectOf(data)),
          { root },
        ),
      );
  }
}

function message(step: MessageStep, group: Group, mode: Mode, data: (n: number) => number): Started {
  const { dtype, count, tag, pairs, isFromAny } = step;
  const { rank } = group;
  const buffers: Memory[] = [];
  const works = pairs.flatMap(([from, to]): Promise<unknown>[] => {
    if (from !== rank && to !== rank) return [];
    const memory = filled(dtype, count, null, data);
    buffers.push(memory);
    if (from === rank) return [invoke(group, mode, 'send', memory.like, to, { tag })];
    return [invoke(group, mode, 'recv', memory.like, isFromAny ? anySource : from, { tag })];
  });
  // The order of messages from several senders is random, so sort them.
  const sources = Promise.all(works).then((values) => {
    if (!isFromAny) return values;
    const order = [...values.keys()].sort((a, b) => compare(values, buffers, a, b));
    buffers.splice(0, buffers.length, ...order.map((index) => buffers[index] as Memory));
    return order.map((index) => values[index]);
  });
  return { work: sources, buffers, isObject: false };
}

function compare(sources: readonly unknown[], buffers: readonly Memory[], a: number, b: number): number {
  return (
    Number(sources[a]) - Number(sources[b]) || Buffer.compare(bytesOf(buffers[a]!), bytesOf(buffers[b]!))
  );
}

/**
 * Returns random elements that make `op` exact in any order: any integers, or floats that are small whole
 * numbers.
 */
function filled(dtype: DType, count: number, op: ReduceOp | null, data: (n: number) => number): Memory {
  const elements = elementsOf(allocHost(count, dtype));
  const drawn = elements.subarray(0, 500);
  if (dtype.includes('float')) {
    const values = floatsFor(op, dtype).map((value) => encode(dtype, value));
    for (let i = 0; i < drawn.length; i++) drawn[i] = values[data(values.length)] as never;
  } else if (dtype === 'bool') {
    for (let i = 0; i < drawn.length; i++) drawn[i] = data(2);
  } else {
    const bytes = bytesOf({ elements: drawn });
    for (let i = 0; i < bytes.length; i++) bytes[i] = data(256);
  }
  // Copies the first elements, because drawing all of them would take most of the time.
  for (let done = 500; done < count; done *= 2) elements.copyWithin(done, 0, done);
  return { like: isPlain(dtype) ? elements : { data: elements, dtype }, elements };
}

/** Returns the values to draw from: no zeros, because the sign of a zero may depend on the order. */
function floatsFor(op: ReduceOp | null, dtype: DType): readonly number[] {
  if (op === 'prod') return [1, -1, 2, -2];
  if (dtype.startsWith('float8')) return [-4, -2, 2, 4]; // multiples of these also fit into 2 bits of fraction
  if (op === 'avg') return [-36, -24, -12, 12, 24, 48];
  return [-6, -4, -2, 2, 4, 8];
}

function objectOf(data: (n: number) => number): unknown {
  const length = [0, 3, 200, 5_000][data(4)]!;
  return { id: data(1_000), text: 'x'.repeat(data(length + 1)), list: [data(9), null, 2n ** 65n] };
}

function digestOf(value: unknown, buffers: readonly Memory[]): string {
  const hash: Hash = createHash('sha1');
  hash.update(JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each)) ?? '');
  for (const buffer of buffers) hash.update(bytesOf(buffer));
  return hash.digest('hex').slice(0, 8);
}

function bytesOf({ elements }: Pick<Memory, 'elements'>): Uint8Array {
  return new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
