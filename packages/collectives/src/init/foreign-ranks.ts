// Ranks that have come to the store of a job and do not speak init() there.
import type { Store } from '@ringwise/store';
import { CollectiveError, type Site } from '../errors.ts';
import { ranksOnGloo } from './errors.ts';

/** Under which keys PyTorch's gloo writes the address of a rank of its default group. */
const glooKeys = (rank: number, restart: string): readonly string[] => [
  `default_pg/0//cpu//0/${rank}`,
  `/worker/attempt_${restart}/default_pg/0//cpu//0/${rank}`, // where older ones meet at their launcher's store
  `0//cpu//0/${rank}`, // in a store that init_process_group() was given
];

/** Where ranks that `error` misses are PyTorch's with gloo: an error that says so. Else `error` itself. */
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
