// Rules for the hosts of a job that both coordinators follow: no two have the same node rank, and they get ranks in
// order.
import type { Member } from './messages.ts';

/** Returns the host that already has the node rank of `member`; undefined if none has, or `member` has none. */
export function twinOf<H extends { readonly member: Member }>(
  hosts: Iterable<H>,
  { nodeRank }: Member,
): H | undefined {
  return nodeRank === null ? undefined : [...hosts].find(({ member }) => member.nodeRank === nodeRank);
}

/**
 * Sorts hosts in place by node rank, and returns them. Hosts without one keep their order of arrival, which is the
 * order in `hosts`, after `self`, the launcher that keeps the store.
 */
export function inOrder<H extends { readonly member: Member }>(hosts: H[], self: string): H[] {
  const order = ({ member: { id, nodeRank } }: H) => nodeRank ?? (id === self ? -1 : 0);
  return hosts.sort((a, b) => order(a) - order(b)); // stable
}
