// Which rank updates which parameters, and which rank keeps a copy of their optimizer state. Functions of numbers that
// all ranks have, so that they agree without a message. A parameter is named by its position in the list of all.
import type { Group } from '@ringwise/collectives';

/** Positions of the parameters of each rank. */
export interface Deal {
  /** Those that the rank updates and sends to the others. Each parameter is in one list. */
  readonly owned: readonly (readonly number[])[];
  /** Those of another rank, which the rank updates as well, so that their state survives the loss of their owner. */
  readonly copied: readonly (readonly number[])[];
}

/** A parameter whose state rank `from` gives to rank `to`. */
export interface Move {
  readonly position: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Deals parameters of `counts` elements to the ranks of a group, except those in `leaving`: from the largest on, each
 * to the rank with the least so far. With two copies, the copy is on another rank, on another host if the hosts have
 * about equally many ranks.
 */
export function dealOf(
  counts: readonly number[],
  { size, hosts }: Pick<Group, 'size' | 'hosts'>,
  copies: number,
  leaving: readonly number[] = [],
): Deal {
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

/** Returns all ranks, one of each host in turn, so that neighbours are on different hosts as far as possible. */
function acrossHosts(hosts: readonly (readonly number[])[]): number[] {
  const most = Math.max(...hosts.map(({ length }) => length));
  return Array.from({ length: most }, (_, i) => hosts.flatMap((ranks) => ranks.slice(i, i + 1))).flat();
}

/**
 * Returns the moves after which every rank has what `deal` says. `held` has what each rank holds now. A parameter that
 * no rank holds is in no move; lostOf() names it.
 */
export function movesOf(held: readonly (readonly number[])[], { owned, copied }: Deal): Move[] {
  return owned.flatMap((own, to) =>
    [...own, ...copied[to]!]
      .filter((position) => !held[to]!.includes(position))
      .flatMap((position) => {
        const holders = holdersOf(held, position);
        return holders.length > 0 ? [{ position, from: holders[to % holders.length]!, to }] : [];
      }),
  );
}

/** Returns the ranks that hold a parameter. */
export const holdersOf = (held: readonly (readonly number[])[], position: number): number[] =>
  [...held.keys()].filter((rank) => held[rank]!.includes(position));

/** Returns the parameters, of `count`, that no rank holds. */
export const lostOf = (held: readonly (readonly number[])[], count: number): number[] =>
  Array.from({ length: count }, (_, position) => position).filter(
    (position) => holdersOf(held, position).length === 0,
  );

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
