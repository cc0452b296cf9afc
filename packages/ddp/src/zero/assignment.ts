// Assigns parameters to the ranks that update them, and to the ranks that keep a copy of their optimizer state. Pure
// functions of numbers that all ranks have, so that the ranks agree without a message. A parameter is identified by its
// position in the list of all parameters.
import type { Group } from '@ringwise/collectives';

/** Positions of the parameters of each rank. */
export interface Assignment {
  /** Parameters that the rank updates and sends to the others. Each parameter is in one list. */
  readonly owned: readonly (readonly number[])[];
  /** Parameters of another rank that the rank updates as well, so that their state survives the loss of that rank. */
  readonly copied: readonly (readonly number[])[];
}

/** A transfer of a parameter's state from rank `from` to rank `to`. */
export interface Move {
  readonly position: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Assigns parameters of `counts` elements to the ranks of a group, except those in `leaving`: from the largest on, each
 * to the rank with the fewest elements so far. With two copies, the copy is on another rank, and on another host if the
 * hosts have about equally many ranks.
 */
export function assignmentOf(
  counts: readonly number[],
  { size, hosts }: Pick<Group, 'size' | 'hosts'>,
  copies: number,
  leaving: readonly number[] = [],
): Assignment {
  const isStaying = (rank: number) => !leaving.includes(rank);
  const staying = Array.from({ length: size }, (_, rank) => rank).filter(isStaying);
  const shares = assign(counts, staying.length);
  const owned = Array.from({ length: size }, (_, rank) => shares[staying.indexOf(rank)] ?? []);
  const copied: (readonly number[])[] = owned.map(() => []);
  const ring = acrossHosts(hosts.length > 0 ? hosts : [staying]).filter(isStaying);
  if (copies > 1 && ring.length > 1)
    for (const [i, rank] of ring.entries()) copied[ring[(i + 1) % ring.length]!] = owned[rank]!;
  return { owned, copied };
}

/**
 * Returns all ranks, alternating between hosts, so that neighbours in the list are on different hosts where possible.
 */
function acrossHosts(hosts: readonly (readonly number[])[]): number[] {
  const most = Math.max(...hosts.map(({ length }) => length));
  return Array.from({ length: most }, (_, i) => hosts.flatMap((ranks) => ranks.slice(i, i + 1))).flat();
}

/**
 * Returns the transfers after which every rank has the states that `assignment` gives it. `held` lists the parameters
 * whose state each rank has now. A parameter whose state no rank has is in no transfer; lostOf() names it.
 */
export function movesOf(held: readonly (readonly number[])[], { owned, copied }: Assignment): Move[] {
  const holdersBy = holdersOf(held);
  return owned.flatMap((own, to) =>
    [...own, ...copied[to]!].flatMap((position) => {
      const holders = holdersBy.get(position) ?? [];
      if (holders.length === 0 || holders.includes(to)) return [];
      return [{ position, from: holders[to % holders.length]!, to }];
    }),
  );
}

/** Returns the ranks that have the state of a parameter, ascending, by its position. */
export function holdersOf(held: readonly (readonly number[])[]): Map<number, number[]> {
  const holders = new Map<number, number[]>();
  for (const [rank, positions] of held.entries())
    for (const position of new Set(positions)) {
      const known = holders.get(position);
      if (known === undefined) holders.set(position, [rank]);
      else known.push(rank);
    }
  return holders;
}

/** Returns the parameters, of `count`, whose state no rank has. */
export function lostOf(held: readonly (readonly number[])[], count: number): number[] {
  const holders = holdersOf(held);
  return Array.from({ length: count }, (_, position) => position).filter(
    (position) => !holders.has(position),
  );
}

function assign(counts: readonly number[], ranks: number): number[][] {
  const shards = Array.from({ length: ranks }, (): number[] => []);
  const loads = new Float64Array(ranks);
  const largestFirst = [...counts.keys()].sort((a, b) => counts[b]! - counts[a]! || a - b);
  for (const position of largestFirst) {
    const lightest = loads.indexOf(Math.min(...loads));
    shards[lightest]!.push(position);
    loads[lightest]! += counts[position]!;
  }
  return shards.map((shard) => shard.sort((a, b) => a - b));
}
