// --numa-binding: which processors each rank of a host may use. Its home is the memory node of its GPU; without GPUs
// the ranks are spread over the nodes in blocks, so that neighbours by rank are neighbours in memory.

import { tooManyForCores } from '../errors.ts';
import type { Processor } from './topology.ts';

/** As torchrun has them. */
export const bindingKinds = ['node', 'socket', 'exclusive', 'core-complex'] as const;
export type BindingKind = (typeof bindingKinds)[number];

/** The processors of each local rank. `gpuNodes` has the node of each GPU, null where it is not known. */
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
    const place = homes.slice(0, local).filter((other) => other === home).length;
    const sharers = homes.filter((other) => other === home).length;
    return choices[kind](
      processors.filter(({ node }) => node === home),
      { place, sharers },
      processors,
    );
  });
}

/** The how-manieth of how many ranks with the same home. */
interface Neighbours {
  readonly place: number;
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
  'core-complex': (home, { place }) => {
    const complexes = distinct(home.map(({ complex }) => complex));
    return home.filter(({ complex }) => complex === complexes[place % complexes.length]);
  },
  exclusive: share,
};

/** Whole cores, as evenly as can be; the first sharers get those that are left over. */
function share(processors: readonly Processor[], { place, sharers }: Neighbours): Processor[] {
  const cores = distinct(processors.map(({ core }) => core));
  if (cores.length < sharers) throw tooManyForCores(sharers, cores.length);
  const each = Math.floor(cores.length / sharers);
  const extra = cores.length % sharers;
  const first = place * each + Math.min(place, extra);
  const mine = cores.slice(first, first + each + (place < extra ? 1 : 0));
  return processors.filter(({ core }) => mine.includes(core));
}

export function coresOf(processors: readonly Processor[]): number {
  return distinct(processors.map(({ core }) => core)).length;
}

function distinct(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}
