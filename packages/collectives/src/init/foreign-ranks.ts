// Detects ranks that have joined a job's store with PyTorch instead of ringwise.
import type { Store } from '@ringwise/store';
import { CollectiveError, type Site } from '../errors.ts';
import { ranksOnGloo } from './errors.ts';

/** Returns the keys under which PyTorch's gloo may write the address of a rank of its default group. */
const glooKeys = (rank: number, restart: string): readonly string[] => [
  `default_pg/0//cpu//0/${rank}`,
  `/worker/attempt_${restart}/default_pg/0//cpu//0/${rank}`, // older versions, at their launcher's store
  `0//cpu//0/${rank}`, // in a store that init_process_group() was given
];

/**
 * Returns an error that says so if ranks that `error` reports missing run PyTorch with gloo, else `error`
 * itself.
 */
export async function explainMissing(error: unknown, store: Store, site: Site): Promise<unknown> {
  if (!CollectiveError.is(error) || error.code !== 'ERR_COLL_INIT' || error.peers.includes(site.rank))
    return error;
  const restart = process.env.TORCHELASTIC_RESTART_COUNT || '0';
  const isOnGloo = async (rank: number) => {
    const found = await Promise.all(glooKeys(rank, restart).map((key) => store.check([key])));
    return found.includes(true);
  };
  try {
    const found = await Promise.all(error.peers.map(isOnGloo));
    const ranks = error.peers.filter((_, index) => found[index]);
    return ranks.length === 0
      ? error
      : new CollectiveError(ranksOnGloo(error, ranks), site, { cause: error });
  } catch {
    return error; // the store has gone; what it could tell is lost
  }
}
