// The options of a group that another group has made.
import { hostsOfMembers } from '../../init/placement.ts';
import type { GroupOptions } from '../../options/group-options.ts';
import type { Connected, SubgroupRequest } from './membership.ts';

/** The properties of a group that its subgroups inherit. */
export interface Parent {
  readonly ranks: readonly number[];
  readonly localRank: number;
  readonly localSize: number;
  readonly hosts: readonly (readonly number[])[];
}

/** Returns the options of the subgroup that `request` asked of `parent`. `instead`: see GroupOptions. */
export function childOptions(
  parent: Parent,
  { members, name, timeoutMs }: SubgroupRequest,
  { subgroups, survivors }: Connected,
  instead: string | undefined,
): GroupOptions {
  const { localRank, localSize, hosts } = parent;
  return {
    ...{ name, timeoutMs, subgroups },
    ranks: members.map((member) => parent.ranks[member] as number),
    placement: { localRank, localSize, hosts: hostsOfMembers(hosts, members) },
    ...(survivors && { survivors }),
    ...(instead !== undefined && { instead }),
  };
}
