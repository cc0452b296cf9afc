// Chooses the members that a learner asks for the state.
import type { Member, View, Wish } from '../membership/protocol/view.ts';

/** Maximum number of members that send the state to one learner. */
export const mostSources = 4;

/**
 * Returns the members of `view` that a learner asks: those on its host if there are any, else members of all hosts.
 * Leaves out members in `ended`, and the member whose slot the learner takes over.
 */
export function candidates(view: View, self: Wish, ended: ReadonlySet<string>): Member[] {
  const living = view.members.filter(({ id, slot }) => !ended.has(id) && slot !== self.slot);
  const near = living.filter(({ host }) => host === self.host);
  return (near.length > 0 ? near : living).slice(0, mostSources);
}
