// Finds the ranks that share a host. The ranks exchange their hosts during the rendezvous, so the result does
// not depend on the launcher.

/** The hosts of a group, and a rank's position on its host. */
export interface Placement {
  /** Index of this rank among the ranks of its host; also the index of its device. */
  readonly localRank: number;
  /** Number of ranks on this host. */
  readonly localSize: number;
  /**
   * Ranks by host, in order; rank 0's host comes first. Empty if the ranks have not exchanged their hosts.
   */
  readonly hosts: readonly (readonly number[])[];
}

/** One rank's description of its host, sent to all ranks. */
export interface HostInfo {
  /** Equal for two ranks exactly if they are on the same host. */
  readonly host: string;
  /** Local rank from the launcher, or null. */
  readonly localRank: number | null;
  /** The rank's CUDA_VISIBLE_DEVICES. Ranks with different values may use the same device index. */
  readonly devices: string;
}

/** Returns the placement of `rank`. `hostInfos` describes the hosts of all ranks, in rank order. */
export function placementOf(rank: number, hostInfos: readonly HostInfo[]): Placement {
  const hosts = hostsOf(hostInfos.map(({ host }) => host));
  const neighbours = hosts.find((ranks) => ranks.includes(rank))!;
  const told = neighbours.map((other) => hostInfos[other]!);
  const localRank = areDistinct(told) ? hostInfos[rank]!.localRank! : neighbours.indexOf(rank);
  return { localRank, localSize: neighbours.length, hosts };
}

/** Returns the placement of ranks that are all on one host, without an exchange. */
export function onOneHost(rank: number, size: number): Placement {
  return { localRank: rank, localSize: size, hosts: [Array.from({ length: size }, (_, other) => other)] };
}

/**
 * Returns the hosts of a subgroup, in the subgroup's ranks. `members` are its ranks in the group that `hosts`
 * describes.
 */
export function hostsOfMembers(
  hosts: readonly (readonly number[])[],
  members: readonly number[],
): readonly (readonly number[])[] {
  if (hosts.length === 0) return [];
  return hostsOf(members.map((member) => hosts.findIndex((ranks) => ranks.includes(member))));
}

/** Groups ranks by the name of their host, in the order of each host's first rank. */
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
 * Returns whether the launcher's local ranks can be used on one host: all are given, none is too large, and
 * no two ranks with the same devices have the same one. They collide, for example, if two launchers on one
 * host both count from 0.
 */
function areDistinct(hostInfos: readonly HostInfo[]): boolean {
  const taken = new Set<string>();
  for (const { localRank, devices } of hostInfos) {
    if (localRank === null || localRank >= hostInfos.length) return false;
    taken.add(`${localRank} of ${devices}`);
  }
  return taken.size === hostInfos.length;
}
