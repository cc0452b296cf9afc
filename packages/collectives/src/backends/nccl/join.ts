// Joins an NCCL communicator with all processes that have its unique id, such as the ranks of a PyTorch job.
// NCCL is all that these processes share: ringwise cannot compare what the ranks call or name a missing rank.

import { CollectiveError, type Failure } from '../../errors.ts';
import { Group } from '../../group/group.ts';
import { detectLauncher } from '../../init/env.ts';
import { rankOutOfRange } from '../../init/errors.ts';
import { expectedStore, isStore } from '../../init/plan.ts';
import { withStoreErrors } from '../../init/store-errors.ts';
import { wrongOption } from '../../options/errors.ts';
import type { JoinNcclOptions } from '../../options/join-nccl-options.ts';
import { checkGroupOptions } from '../../options/known-options.ts';

/**
 * Joins the NCCL communicator whose unique id is in a store, where rank 0 puts it. Collective: resolves when
 * this rank has the id; the connection is made at the first operation. Rejects with ERR_COLL_INVALID or
 * ERR_COLL_INIT for wrong options, with ERR_COLL_SYSTEM without a device or NCCL, and with ERR_COLL_INIT if the
 * store fails or the id does not arrive within `timeoutMs`.
 *
 * The group takes CUDA memory and has only the collectives that are a single NCCL call. All ranks must call
 * the same collectives in the same order, or they wait until the deadline. PyTorch's rank 0 makes the id at
 * its first collective on a device, and all other ranks wait for that. `register()` does nothing in such a
 * group: NCCL needs registered memory on all ranks or on none, and this rank does not know what the others
 * do.
 */
export async function joinNccl(options: JoinNcclOptions): Promise<Group> {
  const calls = { error: (failure: Failure) => new CollectiveError(failure, null) };
  const given: Partial<JoinNcclOptions> = options === undefined ? {} : options;
  checkGroupOptions(calls, 'joinNccl', given);
  const { store, key, rank = Number.NaN, size = Number.NaN, timeoutMs = 300_000, name = 'nccl' } = given;
  if (!isStore(store)) throw calls.error(wrongOption('joinNccl', 'store', expectedStore(store), store));
  if (typeof key !== 'string' || key === '')
    throw calls.error(wrongOption('joinNccl', 'key', 'a string that is not empty', key));
  if (!Number.isInteger(size) || !Number.isInteger(rank) || rank < 0 || rank >= size)
    throw new CollectiveError(rankOutOfRange(rank, size, 'options', 'joinNccl'), null);
  const { joinedBackend } = await import('./joined.ts');
  const backend = await withStoreErrors('joinNccl', { group: name, rank, size }, () =>
    joinedBackend({ store, key, rank, size, timeoutMs, group: name }),
  );
  // The other ranks may run another library, so only the launcher's environment can tell the placement, and
  // only if it describes the same rank and size.
  const launched = detectLauncher(process.env);
  const told = launched?.rank === rank && launched.size === size ? launched : null;
  const placement = { localRank: told?.localRank ?? rank, localSize: told?.localSize ?? size, hosts: [] };
  return new Group(backend, { name, timeoutMs, placement });
}
