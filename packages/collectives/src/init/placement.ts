// Which ranks share a host. All ranks tell each other where they are when they meet, so it does not depend on which
// launcher has started them, or on what that one says.

export interface Placement {
  /** Number of this rank among the ranks of its host: the one that takes the device of this index. */
  readonly localRank: number;
  /** Ranks on this host. */
  readonly localSize: number;
  /** Ranks by host, in order; the host of rank 0 comes first. Empty where the ranks have not told each other. */
  readonly hosts: readonly (readonly number[])[];
}

/** What a rank tells the others of where it is. */
export interface Seat {
  /** Equal for two ranks exactly if they are on one host. */
  readonly host: string;
  /** What its launcher says, or null. */
  readonly localRank: number | null;
  /** Its CUDA_VISIBLE_DEVICES: ranks that see different devices may have the same index for theirs. */
  readonly devices: string;
}

export function placementOf(rank: number, seats: readonly Seat[]): Placement {
  const hosts = hostsOf(seats.map(({ host }) => host));
  const neighbours = hosts.find((ranks) => ranks.includes(rank))!;
  const told = neighbours.map((other) => seats[other]!);
  const localRank = areDistinct(told) ? seats[rank]!.localRank! : neighbours.indexOf(rank);
  return { localRank, localSize: neighbours.length, hosts };
}

/** Of ranks that are all on one host, which nobody has to tell. */
export function onOneHost(rank: number, size: number): Placement {
  return { localRank: rank, localSize: size, hosts: [Array.from({ length: size }, (_, other) => other)] };
}

/** The hosts of a subgroup, in its own ranks. `members` are its ranks in the group that `hosts` is about. */
export function hostsOfMembers(
  hosts: readonly (readonly number[])[],
  members: readonly number[],
): readonly (readonly number[])[] {
  if (hosts.length === 0) return [];
  return hostsOf(members.map((member) => hosts.findIndex((ranks) => ranks.includes(member))));
}

/** Ranks with the same name of a host, in the order of each host's first rank. */
function hostsOf(names: readonly unknown[]): number[][] {
  const hosts = new Map<unknown, number[]>();
  for (const [rank, name] of names.entries()) {
    const ranks = hosts.get(name);
    if (ranks === undefined) hosts.set(name, [rank]);
    else ranks.push(rank);
  }
  return [...hosts.values()];
}

/**
 * Whether the launcher's numbers of the ranks of one host can be used: all are there, none is too large, and no two
 * ranks with the same devices have the same. Two launchers on one host number their ranks from 0 each, for example.
 */
function areDistinct(seats: readonly Seat[]): boolean {
  const taken = new Set<string>();
  for (const { localRank, devices } of seats) {
    if (localRank === null || localRank >= seats.length) return false;
    taken.add(`${localRank} of ${devices}`);
  }
  return taken.size === seats.length;
}
