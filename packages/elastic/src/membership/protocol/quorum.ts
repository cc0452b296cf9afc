// Decides which members of a view suffice for the next one, if the store may move to another host when its own is lost.
// Without a rule, two sides of a partitioned network could both continue: one with the old store, one with another.
//
// A view is connected when all its members are connected, and a member adopts views only from the latest store to which
// it has moved. So two views after the same view cannot both be connected if the two sets of members that they keep
// from it overlap. The rule ensures the overlap:
//
// - In the store in which a view was written, at most half of its members may be missing. Members whose process has
//   certainly ended are not missing: they do not move.
// - In a store to which members have moved, more than half of the members must be present.
//
// A view may have been written although no member was connected in it. Then the views before it count as well, back to
// the last one that was connected.
import type { Member, Quorum, View } from './view.ts';

/** Minimum number of hosts of a view from which the store can move: with two hosts, neither side has more than half. */
const fewestHosts = 3;

/** Returns whether the members of a view continue when the host of its store is lost. */
export function canMove({ members }: Pick<View, 'members'>): boolean {
  const standbys = new Set(members.map(({ standby }) => standby));
  return !standbys.has(null) && standbys.size >= fewestHosts;
}

/**
 * Returns the addresses of the standby stores to which the members of a view move, in this order, when the store at
 * `lost` is lost. Each is on the host of a member.
 */
export function standbysOf({ members }: Pick<View, 'members'>, lost: string | null): string[] {
  const all = new Set(members.flatMap(({ standby }) => standby ?? []));
  return [...all].filter((address) => address !== lost);
}

/**
 * Returns the sets of members of which the view after `view` needs enough. `wasConnected` tells whether some member was
 * certainly connected in `view`: then all its members have adopted it, and earlier views do not count.
 */
export function quorumsOf(view: View, wasConnected: boolean): readonly Quorum[] {
  const own = { members: view.members.map(({ id }) => id), epoch: view.epoch, canMove: canMove(view) };
  return wasConnected ? [own] : [...view.unsettled, own];
}

/** Returns whether no subset of these sets can suffice in a store that has moved `epoch` times. */
export const isHopeless = (quorums: readonly Quorum[], epoch: number): boolean =>
  quorums.some((quorum) => quorum.epoch !== epoch && !quorum.canMove);

/**
 * Returns whether the `kept` members suffice for the next view in a store that has moved `epoch` times. `gone` are the
 * members that have certainly ended or that leave.
 */
export function suffices(
  quorums: readonly Quorum[],
  kept: readonly Pick<Member, 'id'>[],
  gone: ReadonlySet<string>,
  epoch: number,
): boolean {
  const ids = new Set(kept.map(({ id }) => id));
  return quorums.every((quorum) => {
    const { members } = quorum;
    const there = members.filter((id) => ids.has(id)).length;
    if (quorum.epoch !== epoch) return quorum.canMove && there > members.length / 2;
    const missing = members.filter((id) => !ids.has(id) && !gone.has(id)).length;
    return !quorum.canMove || missing <= members.length / 2;
  });
}
