// --numa-binding: the processors that each rank of a host may use. A rank's home is the NUMA node of its GPU. If
// there are fewer GPUs than ranks, or that node is unknown, ranks are distributed over the nodes in blocks, so that
// neighbouring ranks share a node.

import { tooManyForCores } from '../errors.ts';
import type { Processor } from './topology.ts';

/** Kinds of binding, named as in torchrun. */
export const bindingKinds = ['node', 'socket', 'exclusive', 'core-complex'] as const;
export type BindingKind = (typeof bindingKinds)[number];

/** Returns the processors of each local rank. `gpuNodes` has the NUMA node of each GPU, null if unknown. */
export function bindRanks(
  kind: BindingKind,
  processors: readonly Processor[],
  nproc: number,
  gpuNodes: readonly (number | null)[],
): Processor[][] {
  const nodes = distinct(processors.map(({ node }) => node));
  const homes = Array.from({ length: nproc }, (_, local) => {
    const near = gpuNodes.length >= nproc ? gpuNodes[local]! : null;
    return near !== null && nodes.includes(near) ? near : nodes[Math.floor((local * nodes.length) / nproc)]!;
  });
  return homes.map((home, local) => {
    const index = homes.slice(0, local).filter((other) => other === home).length;
    const sharers = homes.filter((other) => other === home).length;
    return choices[kind](
      processors.filter(({ node }) => node === home),
      { index, sharers },
      processors,
    );
  });
}

/** A rank's index among the ranks with the same home (`index`), and their number (`sharers`). */
interface Neighbours {
  readonly index: number;
  readonly sharers: number;
}

const choices: Readonly<
  Record<
    BindingKind,
    (home: readonly Processor[], neighbours: Neighbours, all: readonly Processor[]) => Processor[]
  >
> = {
  node: (home) => [...home],
  socket: (home, _, all) => all.filter(({ socket }) => socket === home[0]!.socket),
  'core-complex': (home, { index }) => {
    const complexes = distinct(home.map(({ complex }) => complex));
    return home.filter(({ complex }) => complex === complexes[index % complexes.length]);
  },
  exclusive: share,
};

/**
 * Returns a rank's share of the cores: whole cores, as evenly as possible; the first ranks get the remaining
 * ones.
 */
function share(processors: readonly Processor[], { index, sharers }: Neighbours): Processor[] {
  const cores = distinct(processors.map(({ core }) => core));
  if (cores.length < sharers) throw tooManyForCores(sharers, cores.length);
  const each = Math.floor(cores.length / sharers);
  const extra = cores.length % sharers;
  const first = index * each + Math.min(index, extra);
  const mine = cores.slice(first, first + each + (index < extra ? 1 : 0));
  return processors.filter(({ core }) => mine.includes(core));
}

/** Returns the number of cores; hyper-threads of one core count once. */
export function coresOf(processors: readonly Processor[]): number {
  return distinct(processors.map(({ core }) => core)).length;
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}
