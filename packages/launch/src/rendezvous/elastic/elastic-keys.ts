// The keys of an elastic job in the store of its ranks. @ringwise/elastic declares the same names (membership/keys.ts).
// Launchers read views and write `ended`.

import { PrefixStore, type Store } from '@ringwise/store';

/** Returns the part of the ranks' store that belongs to the elastic job `runId`. */
export const elasticStore = (runId: string, store: Store): Store =>
  new PrefixStore(`ringwise/${runId}/elastic`, store);

/** Shows that the process `slot.incarnation` has certainly ended. */
export const endedKey = (id: string) => `ended/${id}`;

/** View `n` as JSON, written once. */
export const viewKey = (number: number) => `view/${number}`;

/** Epoch of the view that the first ranks to move to this store have copied into it; absent in the first store. */
export const openedKey = 'opened';

/** Number of a view that exists: the latest, or slightly older. */
export const headKey = 'head';
