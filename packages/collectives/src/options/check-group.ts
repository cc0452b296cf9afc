import { CollectiveError } from '../errors.ts';
import type { Group } from '../group/group.ts';
import { wrongOption } from './errors.ts';

/** Throws ERR_COLL_INVALID unless `group` is a group, which may come from another copy of this package. */
export function checkGroup(verb: string, group: unknown): void {
  const { allReduce, size } = (group ?? {}) as Partial<Group>;
  if (typeof allReduce === 'function' && typeof size === 'number') return;
  throw new CollectiveError(wrongOption(verb, 'group', 'a group, as init() gives one', group), null);
}
