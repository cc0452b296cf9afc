// The verbs that can be measured. A new verb is one entry here: what every rank holds before and after, how it is
// called, and the factor between its two bandwidths.
//
// A buffer is a row of parts of `count` elements. What they hold says which answer is right, so that one check serves
// all verbs (patterns.ts).
import type { Verb } from '../src/all-verbs.ts';
import type { BufferLike } from '../src/group/buffer.ts';
import type { Group } from '../src/group/group.ts';
import type { Message, ReduceOptions } from '../src/options/options.ts';
import type { Part } from './patterns.ts';

interface Rank {
  readonly rank: number;
  readonly size: number;
}

/** Options of a verb's calls: `op` if it reduces, `root` if it has one. */
export interface BenchCall extends ReduceOptions {
  readonly root?: number;
}

export interface BenchVerb {
  /** Name on the command line and in the output. */
  readonly name: string;
  readonly verb: Verb;
  /** Description for --help. */
  readonly does: string;
  readonly reduces: boolean;
  readonly hasRoot?: true;
  /**
   * Ratio of nccl-tests' busbw to algbw on `size` ranks: the share of the vector that must cross a rank's
   * link.
   */
  readonly busFactor: (size: number) => number;
  /** The parts of a rank's input before the call. */
  readonly input: (at: Rank) => readonly Part[];
  /** The parts of its output after the call. */
  readonly output: (at: Rank) => readonly Part[];
  /** True if the output is in the input's memory. */
  readonly inPlace: boolean;
  /** `options` is one object for all calls, as in a program that avoids allocations. */
  readonly sync: (group: Group, input: BufferLike, output: BufferLike, options: BenchCall) => unknown;
  readonly start: (
    group: Group,
    input: BufferLike,
    output: BufferLike,
    options: BenchCall,
  ) => PromiseLike<unknown>;
}

export const root = 0;
const term = (part = 0): Part => ({ kind: 'term', part });
const reduced = (part = 0): Part => ({ kind: 'reduced', part });
const message = (id: number): Part => ({ kind: 'message', id });
const each = (size: number, part: (index: number) => Part) => Array.from({ length: size }, (_, i) => part(i));
const atRoot = (group: Group, buffer: BufferLike) => (group.rank === root ? buffer : null);
const previous = ({ rank, size }: Rank) => (rank + size - 1) % size;
const passedOn = (group: Group, input: BufferLike, output: BufferLike): Message[] => [
  { recv: output, from: previous(group) },
  { send: input, to: (group.rank + 1) % group.size },
];
const othersShare = (size: number) => (size - 1) / size;

export const benchVerbs: readonly BenchVerb[] = [
  {
    name: 'all-reduce',
    verb: 'allReduce',
    does: 'every rank ends with the reduction of all buffers',
    reduces: true,
    busFactor: (size) => 2 * othersShare(size),
    input: () => [term()],
    output: () => [reduced()],
    inPlace: true,
    sync: (group, buffer, _, options) => group.allReduceSync(buffer, options),
    start: (group, buffer, _, options) => group.allReduce(buffer, options),
  },
  {
    name: 'reduce',
    verb: 'reduce',
    does: 'rank 0 ends with the reduction of all buffers',
    reduces: true,
    hasRoot: true,
    busFactor: () => 1,
    input: () => [term()],
    output: ({ rank }) => [rank === root ? reduced() : term()],
    inPlace: true,
    sync: (group, buffer, _, options) => group.reduceSync(buffer, options),
    start: (group, buffer, _, options) => group.reduce(buffer, options),
  },
  {
    name: 'broadcast',
    verb: 'broadcast',
    does: 'every rank ends with the buffer of rank 0',
    reduces: false,
    hasRoot: true,
    busFactor: () => 1,
    input: ({ rank }) => [message(rank)],
    output: () => [message(root)],
    inPlace: true,
    sync: (group, buffer, _, options) => group.broadcastSync(buffer, options),
    start: (group, buffer, _, options) => group.broadcast(buffer, options),
  },
  {
    name: 'all-gather',
    verb: 'allGather',
    does: 'every rank ends with the parts of all ranks',
    reduces: false,
    busFactor: othersShare,
    input: ({ rank }) => [message(rank)],
    output: ({ size }) => each(size, message),
    inPlace: false,
    sync: (group, input, output) => group.allGatherSync(input, output),
    start: (group, input, output) => group.allGather(input, output),
  },
  {
    name: 'gather',
    verb: 'gather',
    does: 'rank 0 ends with the parts of all ranks',
    reduces: false,
    hasRoot: true,
    busFactor: othersShare,
    input: ({ rank }) => [message(rank)],
    output: ({ rank, size }) => (rank === root ? each(size, message) : []),
    inPlace: false,
    sync: (group, input, output, options) => group.gatherSync(input, atRoot(group, output), options),
    start: (group, input, output, options) => group.gather(input, atRoot(group, output), options),
  },
  {
    name: 'scatter',
    verb: 'scatter',
    does: 'every rank ends with its part of what rank 0 holds',
    reduces: false,
    hasRoot: true,
    busFactor: othersShare,
    input: ({ rank, size }) => (rank === root ? each(size, message) : []),
    output: ({ rank }) => [message(rank)],
    inPlace: false,
    sync: (group, input, output, options) => group.scatterSync(atRoot(group, input), output, options),
    start: (group, input, output, options) => group.scatter(atRoot(group, input), output, options),
  },
  {
    name: 'reduce-scatter',
    verb: 'reduceScatter',
    does: 'every rank ends with its part of the reduction',
    reduces: true,
    busFactor: othersShare,
    input: ({ size }) => each(size, term),
    output: ({ rank }) => [reduced(rank)],
    inPlace: false,
    sync: (group, input, output, options) => group.reduceScatterSync(input, output, options),
    start: (group, input, output, options) => group.reduceScatter(input, output, options),
  },
  {
    name: 'all-to-all',
    verb: 'allToAll',
    does: 'every rank sends a part to every rank',
    reduces: false,
    busFactor: othersShare,
    input: ({ rank, size }) => each(size, (to) => message(rank * size + to)),
    output: ({ rank, size }) => each(size, (from) => message(from * size + rank)),
    inPlace: false,
    sync: (group, input, output) => group.allToAllSync(input, output),
    start: (group, input, output) => group.allToAll(input, output),
  },
  {
    name: 'send-recv',
    verb: 'send',
    does: 'every rank sends to the next one while it receives from the one before',
    reduces: false,
    busFactor: () => 1,
    input: ({ rank }) => [message(rank)],
    output: (at) => [message(previous(at))],
    inPlace: false,
    sync: (group, input, output) => group.batchSync(passedOn(group, input, output)),
    start: (group, input, output) => group.batch(passedOn(group, input, output)),
  },
  {
    name: 'barrier',
    verb: 'barrier',
    does: 'no rank goes on before all have come; has no size',
    reduces: false,
    busFactor: () => 0,
    input: () => [],
    output: () => [],
    inPlace: true,
    sync: (group) => group.barrierSync(),
    start: (group) => group.barrier(),
  },
];

/**
 * Returns the number of parts of the whole vector, which are equally long; 0 for a verb without data. Counts them
 * at the root, which has the most.
 */
export function partsOf(verb: BenchVerb, size: number): number {
  const at = { rank: root, size };
  return Math.max(verb.input(at).length, verb.output(at).length);
}
