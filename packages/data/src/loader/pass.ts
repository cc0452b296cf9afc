// One pass over a data set, batch by batch. `next` starts loading the next batch and may be called again before that
// one is ready; it answers with a plain value wherever groups and `load` are synchronous.

import { isPromise, type MaybePromise } from '../maybe-promise.ts';

export interface Loaded<B> {
  readonly batch: B;
  /** Samples in it. */
  readonly count: number;
}

export interface Pass<B> {
  /** undefined: nothing left. */
  readonly next: () => MaybePromise<Loaded<B> | undefined>;
  /** Settles loads that have ended in other threads, which else takes a turn of the event loop. Returns how many have not. */
  readonly takeReady?: () => number;
  /** Closes the sequence of groups; waits for the `next` calls that are still pulling from it. */
  readonly close: () => MaybePromise<unknown>;
}

/** A group is what becomes one batch: indices, or the samples themselves. */
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

/** Takes a generator, not any iterator, because only generators promise to queue overlapping calls. */
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

/** The same pass, each of whose batches goes through `map` once it is loaded. */
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
