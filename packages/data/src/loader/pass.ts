// One pass over a data set, batch by batch. A group is the indices, or the samples, that become one batch. `next` reads
// the next group and starts loading its batch; it may be called again before that batch is ready. It returns a plain
// value if both the groups and `load` are synchronous.

import { isPromise, type MaybePromise } from '../maybe-promise.ts';

export interface Loaded<B> {
  readonly batch: B;
  /** Number of samples in the batch. */
  readonly count: number;
}

export interface Pass<B> {
  /** Returns the next batch, or undefined at the end of the pass. */
  readonly next: () => MaybePromise<Loaded<B> | undefined>;
  /**
   * Settles loads that have ended in other threads, without a turn of the event loop. Returns the number of
   * loads that have not ended.
   */
  readonly takeReady?: () => number;
  /** Closes the sequence of groups, after pending `next` calls that still read from it. */
  readonly close: () => MaybePromise<unknown>;
}

/** Makes the batch of a group. */
type Load<G, B> = (group: G) => MaybePromise<B>;

export function openPass<G extends { readonly length: number }, B>(
  groups: Iterable<G>,
  load: Load<G, B>,
): Pass<B> {
  const iterator = groups[Symbol.iterator]();
  return {
    next: () => {
      const step = iterator.next();
      return step.done ? undefined : loadGroup(step.value, load);
    },
    close: () => iterator.return?.(),
  };
}

/** Accepts generators only, because only they guarantee to queue overlapping calls. */
export function openAsyncPass<G extends { readonly length: number }, B>(
  groups: AsyncGenerator<G, void, undefined>,
  load: Load<G, B>,
): Pass<B> {
  return {
    next: async () => {
      const step = await groups.next();
      return step.done ? undefined : loadGroup(step.value, load);
    },
    close: () => groups.return(),
  };
}

/** Returns the same pass with `map` applied to each loaded batch. */
export const mappedPass = <B>({ next, ...pass }: Pass<B>, map: (batch: B) => B): Pass<B> => ({
  ...pass,
  next: () => {
    const mapped = (loaded: Loaded<B> | undefined) => loaded && { ...loaded, batch: map(loaded.batch) };
    const loaded = next();
    return isPromise(loaded) ? loaded.then(mapped) : mapped(loaded);
  },
});

function loadGroup<G extends { readonly length: number }, B>(
  group: G,
  load: Load<G, B>,
): MaybePromise<Loaded<B>> {
  const batch = load(group);
  const count = group.length;
  return isPromise(batch) ? batch.then((ready) => ({ batch: ready, count })) : { batch, count };
}
