// One NCCL communicator with whoever else has its unique id, such as the ranks of a PyTorch job. NCCL is all that they have in
// common: nobody compares what the ranks call, and who is missing has no name.

import { CollectiveError, type Failure } from '../../errors.ts';
import { Group } from '../../group/group.ts';
import { detectLauncher } from '../../init/env.ts';
import { rankOutOfRange } from '../../init/errors.ts';
import { expectedStore, isStore } from '../../init/plan.ts';
import { wrongOption } from '../../options/errors.ts';
import type { JoinNcclOptions } from '../../options/join-nccl-options.ts';
import { checkGroupOptions } from '../../options/known-options.ts';

/**
 * Joins the communicator of the unique id that is found in a store, where rank 0 puts it. The group takes CUDA memory, and has
 * the collectives that are one call of NCCL's: all ranks must call the same in the same order, or wait until the deadline.
 * PyTorch's rank 0 makes the id at its first collective on a device, and all others wait for that. `register()` does nothing in
 * such a group: NCCL wants registered memory from all ranks or from none, and what the others do is not known.
 */
export async function joinNccl(options: JoinNcclOptions): Promise<Group> {
  const calls = { error: (failure: Failure) => new CollectiveError(failure, null) };
  checkGroupOptions(calls, 'joinNccl', options);
  const { store, key, rank, size, timeoutMs = 300_000, name = 'nccl' } = options;
  if (!isStore(store)) throw calls.error(wrongOption('joinNccl', 'store', expectedStore, store));
  if (typeof key !== 'string' || key === '')
    throw calls.error(wrongOption('joinNccl', 'key', 'a string that is not empty', key));
  if (!Number.isInteger(size) || !Number.isInteger(rank) || rank < 0 || rank >= size)
    throw new CollectiveError(rankOutOfRange(rank, size, 'joinNccl'), null);
  const { joinedBackend } = await import('./joined.ts');
  const backend = await joinedBackend({ store, key, rank, size, timeoutMs, group: name });
  // The others may be of another library: nobody tells but the launcher, if it is about the same ranks.
  const launched = detectLauncher(process.env);
  const told = launched?.rank === rank && launched.size === size ? launched : null;
  const placement = { localRank: told?.localRank ?? rank, localSize: told?.localSize ?? size, hosts: [] };
  return new Group(backend, { name, timeoutMs, placement });
}
